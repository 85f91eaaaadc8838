"""Functions of Python that only turn constants into constants, each within bounds, so that we may compute them."""

import ast
import base64
import binascii
import html
import operator
import re
import string
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

MAX_LENGTH = 4_000
MAX_BITS = 512
MAX_SHIFT = 64

FAILURES = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError, zlib.error)
"""What a wrong operand raises."""


def small(value: Any) -> bool:
    """Whether a value is of a kind and size we go on with."""
    if isinstance(value, str | bytes | tuple | list | dict | range):
        return len(value) <= MAX_LENGTH
    if isinstance(value, int):
        return value.bit_length() <= MAX_BITS
    return value is None or isinstance(value, float)


def _bounded(*sizes: int) -> None:
    total = 1
    for size in sizes:
        total *= max(size, 1)
    if total > MAX_LENGTH * 10:
        raise ValueError


def _added(one: Any, other: Any) -> Any:
    return one + other


def _times(one: Any, other: Any) -> Any:
    if isinstance(one, str | bytes | tuple):
        _bounded(len(one), other)
    elif isinstance(other, str | bytes | tuple):
        _bounded(len(other), one)
    return one * other


def _divided(one: Any, other: Any) -> Any:
    """Paths are texts to us, and a text divided by a text is a path."""
    return joined_path(one, other) if isinstance(one, str) else one / other


def _shifted(one: int, by: int) -> int:
    if by > MAX_SHIFT:
        raise ValueError
    return one << by


def _raised(one: int, by: int) -> int:
    if abs(by) > MAX_SHIFT or abs(one) > MAX_LENGTH:
        raise ValueError
    return one**by  # type: ignore[no-any-return]  # a small int


_PLACEHOLDER = re.compile(r"%(?:\(\w+\))?[a-zA-Z%]?")
_SPEC = re.compile(r"[<>^=]?[ +-]?#?0?\d{0,2},?(?:\.\d{1,2})?[bcdeEfFgGnosxX%]?")
_FIELD = re.compile(r"\{([^{}]*)\}|[{}]")


def _interpolated(text: Any, rest: Any) -> Any:
    if not isinstance(text, str | bytes):
        return text % rest
    # A width such as `%99999999s` would fill the memory, so only the bare placeholders are followed.
    plain = text if isinstance(text, str) else text.decode("latin-1")
    if any(found in ("%", "%(") for found in _PLACEHOLDER.findall(plain)):
        raise ValueError
    return text % rest


def _filled(text: str, *rest: Any) -> str:
    for inside in _FIELD.findall(text.replace("{{", "").replace("}}", "")):
        name, _, spec = inside.partition(":")
        if (name and not name.isdigit()) or not _SPEC.fullmatch(spec):
            raise ValueError
    return text.format(*rest)


def formatted(value: Any, spec: Any) -> str:
    """`format(value, spec)`, for a plain value and a spec that cannot ask for much."""
    if not _SPEC.fullmatch(spec) or not isinstance(value, str | int | float | bytes):
        raise ValueError
    return format(value, spec)


def _replaced(text: Any, old: Any, new: Any, count: int = -1) -> Any:
    _bounded(len(text), len(new))
    return text.replace(old, new, count)


def _joined(by: Any, parts: Any) -> Any:
    _bounded(len(by), len(parts))
    return by.join(parts)


def joined_path(*parts: Any) -> str:
    """The parts as one path; an absolute one starts anew."""
    whole = ""
    for part in map(str, parts):
        whole = part if part.startswith("/") or not whole else f"{whole.rstrip('/')}/{part}"
    return whole


def _decoded(data: Any, encoding: str = "utf-8", *_: Any) -> Any:
    plain = encoding.lower().replace("-", "_")
    if plain in _TEXT_CODECS:
        return data.decode(encoding, "replace") if isinstance(data, bytes) else data
    return _CODECS[plain](data)


def _encoded(text: Any, encoding: str = "utf-8", *_: Any) -> Any:
    plain = encoding.lower().replace("-", "_")
    return text.encode(encoding, "replace") if plain in _TEXT_CODECS else _CODECS[plain](text)


def _unpacked(data: bytes, *_: Any) -> bytes:
    return zlib.decompressobj().decompress(data, MAX_LENGTH)


_ROTATED = str.maketrans(
    string.ascii_letters,
    string.ascii_lowercase[13:]
    + string.ascii_lowercase[:13]
    + string.ascii_uppercase[13:]
    + string.ascii_uppercase[:13],
)
_TEXT_CODECS = frozenset({"utf_8", "utf8", "ascii", "latin_1", "latin1", "iso_8859_1", "cp1252"})
_CODECS: dict[str, Callable[[Any], Any]] = {
    "rot13": lambda text: text.translate(_ROTATED),
    "rot_13": lambda text: text.translate(_ROTATED),
    "hex": binascii.unhexlify,
    "hex_codec": binascii.unhexlify,
    "base64": base64.b64decode,
    "base64_codec": base64.b64decode,
    "zlib": _unpacked,
    "unicode_escape": lambda data: (data if isinstance(data, bytes) else data.encode()).decode("unicode_escape"),
}


def _bytes(value: Any = b"", *rest: Any) -> bytes:
    if isinstance(value, int):
        _bounded(value)
    return value.encode(*rest) if isinstance(value, str) else bytes(value)


def _range(*ends: int) -> tuple[int, ...]:
    _bounded(len(range(*ends)))
    return tuple(range(*ends))


def _zipped(*parts: Any) -> tuple[Any, ...]:
    return tuple(zip(*parts, strict=False))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "chr": chr,
    "ord": ord,
    "str": lambda value="", *rest: _decoded(value, *rest) if rest else str(value),
    "int": int,
    "len": len,
    "abs": abs,
    "bool": bool,
    "repr": repr,
    "hex": hex,
    "bytes": _bytes,
    "bytearray": _bytes,
    "list": tuple,
    "tuple": tuple,
    "reversed": lambda items: tuple(reversed(items)),
    "sorted": lambda items: tuple(sorted(items)),
    "enumerate": lambda items, start=0: tuple(enumerate(items, start)),
    "zip": _zipped,
    "range": _range,
    "sum": sum,
    "min": min,
    "max": max,
    "format": lambda value, spec="": formatted(value, spec),
    "dict": dict,
    "str.join": _joined,
    "bytes.fromhex": bytes.fromhex,
    "bytes.decode": _decoded,
    "str.format": _filled,
    "str.lower": str.lower,
    "str.upper": str.upper,
    "str.maketrans": str.maketrans,
    "str.replace": _replaced,
    "str.__add__": _added,
    "bytearray.fromhex": bytes.fromhex,
    "operator.add": _added,
    "operator.concat": _added,
    "operator.xor": operator.xor,
    "operator.getitem": operator.getitem,
    "base64.b64decode": base64.b64decode,
    "base64.standard_b64decode": base64.b64decode,
    "base64.urlsafe_b64decode": base64.urlsafe_b64decode,
    "base64.decodebytes": lambda data: base64.decodebytes(data),
    "base64.b32decode": base64.b32decode,
    "base64.b16decode": base64.b16decode,
    "base64.b85decode": base64.b85decode,
    "base64.a85decode": base64.a85decode,
    "binascii.unhexlify": binascii.unhexlify,
    "binascii.a2b_hex": binascii.unhexlify,
    "binascii.a2b_base64": binascii.a2b_base64,
    "codecs.decode": _decoded,
    "codecs.encode": _encoded,
    "zlib.decompress": _unpacked,
    "urllib.parse.unquote": unquote,
    "html.unescape": html.unescape,
    "os.path.join": joined_path,
    "os.path.expanduser": str,
    "os.path.abspath": str,
    "os.path.realpath": str,
    "os.path.normpath": str,
    "os.fspath": str,
    "pathlib.Path": joined_path,
    "pathlib.PurePath": joined_path,
    "pathlib.Path.home": lambda: "~",
    "pathlib.Path.cwd": lambda: ".",
    "os.getcwd": lambda: ".",
}
METHODS: dict[str, Callable[..., Any]] = {
    **{name: getattr(str, name) for name in ("title", "capitalize", "swapcase", "casefold", "isalpha", "isdigit")},
    "lower": lambda text: text.lower(),
    "upper": lambda text: text.upper(),
    "strip": lambda text, *rest: text.strip(*rest),
    "lstrip": lambda text, *rest: text.lstrip(*rest),
    "rstrip": lambda text, *rest: text.rstrip(*rest),
    "removeprefix": lambda text, part: text.removeprefix(part),
    "removesuffix": lambda text, part: text.removesuffix(part),
    "replace": _replaced,
    "format": _filled,
    "join": _joined,
    "split": lambda text, *rest: tuple(text.split(*rest)),
    "splitlines": lambda text: tuple(text.splitlines()),
    "partition": lambda text, by: text.partition(by),
    "decode": _decoded,
    "encode": _encoded,
    "translate": lambda text, table: text.translate(table),
    "hex": lambda data: data.hex(),
    "get": lambda held, key, other=None: held.get(key, other),
    "keys": lambda held: tuple(held.keys()),
    "values": lambda held: tuple(held.values()),
    "items": lambda held: tuple(held.items()),
    "copy": lambda held: held,
    "index": lambda held, item: held.index(item),
    "find": lambda held, item: held.find(item),
    "__add__": _added,
    "__getitem__": operator.getitem,
    "joinpath": joined_path,
    "expanduser": str,
    "resolve": str,
    "absolute": str,
    "as_posix": str,
    "with_suffix": lambda path, suffix: path.rpartition(".")[0] + suffix if "." in path else path + suffix,
}
CONSTANTS: dict[str, Any] = {
    **{f"string.{name}": getattr(string, name) for name in ("ascii_lowercase", "ascii_uppercase", "ascii_letters")},
    **{f"string.{name}": getattr(string, name) for name in ("digits", "hexdigits", "punctuation", "printable")},
    "os.sep": "/",
    "os.path.sep": "/",
    "os.curdir": ".",
    "os.pardir": "..",
    "os.name": "posix",
}
OPERATIONS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: _added,
    ast.Sub: operator.sub,
    ast.Mult: _times,
    ast.Div: _divided,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _interpolated,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: _shifted,
    ast.RShift: operator.rshift,
    ast.Pow: _raised,
}
UNARY: dict[type[ast.unaryop], Callable[..., Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
COMPARISONS: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}
CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda value: value, ord("s"): str, ord("r"): repr, ord("a"): ascii}


def operator_of(node: ast.UnaryOp | ast.Compare) -> Callable[..., Any]:
    """What a sign or a single comparison does to its operands; a chain of comparisons is not followed."""
    if isinstance(node, ast.UnaryOp):
        return UNARY[type(node.op)]
    return COMPARISONS.get(type(node.ops[0]), _never) if len(node.ops) == 1 else _never


def _never(*_: Any) -> Any:
    raise ValueError
