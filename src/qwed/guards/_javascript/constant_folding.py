"""Constant folding of JavaScript: text that is concatenated, decoded or reversed."""

import base64
import binascii
import operator
import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from qwed.guards._javascript.abstract_values import MAX_ITEMS, MAX_TEXT, Plain, key_of

Folder = Callable[..., Plain]
_FOLD_FAILURES = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError, re.error)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_PERCENT = re.compile(r"%u([0-9a-fA-F]{4})|%([0-9a-fA-F]{2})")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LARGEST = 1 << 53


_PATTERN = re.compile(r"(?:\[[^\]\\]{1,40}\]|\\[dDsSwW]|\\[^\w]|[^\\\[\](){}*+?|^$])+\+?")
REGEX = "\0regex"
"""Marker for a regular expression among constants: (REGEX, pattern, flags)."""


class UnfoldableError(Exception):
    """The result is too large to follow, or not a constant."""


def fold(folder: Folder | None, arguments: Sequence[Plain]) -> Plain:
    """Return the result of `folder`; raise UnfoldableError if it cannot be computed or is too large."""
    if folder is None:
        raise UnfoldableError
    try:
        result = folder(*arguments)
    except _FOLD_FAILURES as error:
        raise UnfoldableError from error
    if isinstance(result, str | tuple) and len(result) > (MAX_TEXT if isinstance(result, str) else MAX_ITEMS):
        raise UnfoldableError
    return result


def number(text: str) -> Plain:
    """Parse a numeric literal; raise UnfoldableError if it is too large or a bigint."""
    digits = text.replace("_", "")
    if not _NUMBER.fullmatch(digits) or len(digits) > 40:
        raise UnfoldableError
    return int(digits, 0) if digits[:2].lower() in ("0x", "0o", "0b") else _to_integer(float(digits))


def escape(text: str) -> str:
    """Return the character that an escape sequence stands for."""
    body = text[1:]
    if body[:1] in ("x", "u") and len(body) > 1:
        code = int(body[1:].strip("{}"), 16)
        return chr(code) if code < 0x110000 else ""
    if body.isdigit() and body != "0":
        return chr(int(body, 8)) if set(body) <= set("01234567") else body
    return _ESCAPES.get(body, body)


def _to_integer(value: float) -> int | float:
    return int(value) if abs(value) < _LARGEST and value == int(value) else value


def _number_of(value: Plain) -> int | float:
    if isinstance(value, bool | int | float):
        return int(value) if isinstance(value, bool) else value
    text = key_of(value).strip() if not isinstance(value, tuple) or len(value) < 2 else "-"
    return _to_integer(float(int(text, 0) if text[:2].lower() == "0x" else text or 0))


def _bits(value: Plain) -> int:
    return int(_number_of(value)) & 0xFFFFFFFF


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _plus(one: Plain, other: Plain) -> Plain:
    if isinstance(one, str | tuple) or isinstance(other, str | tuple):
        return key_of(one) + key_of(other)
    return _number_of(one) + _number_of(other)


def _power(one: Plain, other: Plain) -> Plain:
    base, exponent = _number_of(one), _number_of(other)
    if abs(base) > 1_000 or abs(exponent) > 15:
        raise UnfoldableError
    return _to_integer(float(base**exponent))


def _arithmetic(combine: Callable[[float, float], float]) -> Folder:
    return lambda one, other: _to_integer(combine(_number_of(one), _number_of(other)))


def _bitwise(combine: Callable[[int, int], int]) -> Folder:
    return lambda one, other: _signed(combine(_bits(one), _bits(other)))


BINARY: dict[str, Folder] = {
    "+": _plus,
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(operator.truediv),
    "%": _arithmetic(lambda one, other: one - other * int(one / other)),
    "**": _power,
    "^": _bitwise(operator.xor),
    "&": _bitwise(operator.and_),
    "|": _bitwise(operator.or_),
    "<<": lambda one, other: _signed(_bits(one) << (_bits(other) & 31)),
    ">>": lambda one, other: _signed(_bits(one)) >> (_bits(other) & 31),
    ">>>": lambda one, other: _bits(one) >> (_bits(other) & 31),
}
UNARY: dict[str, Folder] = {
    "-": lambda one: -_number_of(one),
    "+": _number_of,
    "~": lambda one: _signed(~_bits(one)),
    "!": lambda one: one in (0, "", None, False),
}


def _characters(*codes: Plain) -> str:
    return "".join(chr(int(_number_of(code)) & 0xFFFF) for code in codes)


def _base64(text: Plain, *_rest: Plain) -> str:
    packed = re.sub(r"\s", "", str(text)).replace("-", "+").replace("_", "/").rstrip("=")
    return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True).decode("latin-1")


def _unescape(text: Plain) -> str:
    return _PERCENT.sub(lambda match: chr(int(match[1] or match[2], 16)), str(text))


def _integer(text: Plain, radix: Plain = 10) -> int:
    base = int(_number_of(radix)) or 10
    digits = re.match(r"\s*([+-]?)(?:0[xX])?([0-9a-zA-Z]+)", key_of(text))
    if digits is None or not 2 <= base <= 36:
        raise UnfoldableError
    valid_digits = re.match(f"[{_DIGITS[:base]}]+", digits[2].lower())
    if valid_digits is None or len(valid_digits[0]) > 16:
        raise UnfoldableError
    return int(digits[1] + valid_digits[0], base)


def _buffer(data: Plain, encoding: Plain = "utf8") -> str:
    if isinstance(data, tuple):
        return _characters(*data)
    decode = _DECODERS.get(str(encoding).lower())
    return str(data) if decode is None else decode(str(data))


_DECODERS: dict[str, Callable[[str], str]] = {
    "base64": _base64,
    "base64url": _base64,
    "hex": lambda text: binascii.unhexlify(text).decode("latin-1"),
}


def _join_path(*parts: Plain) -> str:
    whole = ""
    for part in map(key_of, parts):
        whole = part if part.startswith(("/", "~")) and not whole else f"{whole}/{part}" if whole else part
    return re.sub(r"/{2,}", "/", whole)


FUNCTIONS: dict[str, Folder] = {
    "String.fromCharCode": _characters,
    "String.fromCodePoint": _characters,
    "String.raw": lambda *parts: "".join(map(key_of, parts)),
    "String": lambda value="": key_of(value),
    "Number": _number_of,
    "atob": _base64,
    "btoa": lambda text: base64.b64encode(str(text).encode("latin-1")).decode(),
    "unescape": _unescape,
    "decodeURIComponent": lambda text: unquote(str(text), errors="strict"),
    "decodeURI": lambda text: unquote(str(text), errors="strict"),
    "parseInt": _integer,
    "Number.parseInt": _integer,
    "Buffer.from": _buffer,
    "Buffer": _buffer,
    "Array.from": lambda value: tuple(value),
    "Array.of": lambda *items: items,
    "Array": lambda *items: items,
    "Uint8Array": lambda items: items,
    "Uint8Array.from": lambda items: items,
    "Object": lambda value: value,
    "Symbol.for": lambda value: value,
    "path.join": _join_path,
    "path.resolve": _join_path,
    "path.normalize": lambda value: value,
}
"""Functions on constants; a byte buffer is represented by the text of its bytes."""


def _index(text: str | tuple[Plain, ...], index: Plain = 0) -> Plain:
    position = int(_number_of(index))
    return text[position] if 0 <= position < len(text) else None


def _slice(text: str | tuple[Plain, ...], start: Plain = 0, end: Plain = None) -> Plain:
    return text[int(_number_of(start)) : None if end is None else int(_number_of(end))]


def _substring(text: str, start: Plain = 0, end: Plain = None) -> str:
    first = max(int(_number_of(start)), 0)
    last = len(text) if end is None else max(int(_number_of(end)), 0)
    return text[min(first, last) : max(first, last)]


def _substr(text: str, start: Plain = 0, length: Plain = None) -> str:
    first = int(_number_of(start))
    rest = text[first:]
    return rest if length is None else rest[: int(_number_of(length))]


def _split(text: str, by: Plain = None) -> Plain:
    return (text,) if by is None else tuple(text) if by == "" else tuple(text.split(str(by)))


def _to_string(value: Plain, radix: Plain = 10) -> str:
    """Return the result of `toString`, with a base for numbers and an encoding for buffers."""
    if isinstance(value, bool) or not isinstance(value, int) or not isinstance(radix, int) or radix == 10:
        return key_of(value)
    digits, rest = "", abs(value)
    while rest:
        digits, rest = _DIGITS[rest % radix] + digits, rest // radix
    return digits or "0"


def _repeat(text: str, times: Plain) -> str:
    count = int(_number_of(times))
    if count * len(text) > MAX_TEXT:
        raise UnfoldableError
    return text * count


def _replace(text: str, old: Plain, new: Plain, every: bool = False) -> str:
    # `$&` and similar patterns insert parts of the text: `"ev".replace("v", "$&al")`.
    if "$" in str(new):
        raise UnfoldableError
    if isinstance(old, tuple) and old[:1] == (REGEX,):
        # Only patterns without nested repetition, which match in linear time.
        if not _PATTERN.fullmatch(str(old[1])):
            raise UnfoldableError
        flags = re.IGNORECASE if "i" in str(old[2]) else 0
        return re.sub(str(old[1]), lambda _: str(new), text, count=0 if "g" in str(old[2]) else 1, flags=flags)
    return text.replace(str(old), str(new), -1 if every else 1)


TEXT_METHODS: dict[str, Folder] = {
    "charAt": _index,
    "at": lambda text, at=0: text[int(_number_of(at))],
    "charCodeAt": lambda text, at=0: ord(text[int(_number_of(at))]),
    "codePointAt": lambda text, at=0: ord(text[int(_number_of(at))]),
    "slice": _slice,
    "substring": _substring,
    "substr": _substr,
    "split": _split,
    "concat": lambda text, *rest: text + "".join(map(key_of, rest)),
    "replace": _replace,
    "replaceAll": lambda text, old, new: _replace(text, old, new, True),
    "toLowerCase": str.lower,
    "toUpperCase": str.upper,
    "trim": str.strip,
    "trimStart": str.lstrip,
    "trimEnd": str.rstrip,
    "repeat": _repeat,
    "normalize": lambda text, *_form: text,
    "toString": lambda text, *_encoding: text,
    "valueOf": lambda text: text,
}


def _flat(parts: tuple[Plain, ...]) -> tuple[Plain, ...]:
    return tuple(item for part in parts for item in (part if isinstance(part, tuple) else (part,)))


LIST_METHODS: dict[str, Folder] = {
    "join": lambda items, by=",": str(by).join("" if item is None else key_of(item) for item in items),
    "reverse": lambda items: items[::-1],
    "toReversed": lambda items: items[::-1],
    "slice": _slice,
    "concat": lambda items, *rest: items + _flat(rest),
    "at": lambda items, at=0: items[int(_number_of(at))],
    "pop": lambda items: items[-1],
    "shift": lambda items: items[0],
    "flat": lambda items: _flat(items),
    "toString": lambda items: key_of(items),
}
NUMBER_METHODS: dict[str, Folder] = {"toString": _to_string}


def method_folder(receiver: Plain, name: str) -> Folder | None:
    """Return the folder of method `name` of a constant, or None."""
    if isinstance(receiver, str):
        return TEXT_METHODS.get(name)
    return LIST_METHODS.get(name) if isinstance(receiver, tuple) else NUMBER_METHODS.get(name)
