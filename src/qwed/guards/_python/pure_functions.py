"""Pure functions of Python on constants, with bounds, that constant folding may compute."""

import ast
import base64
import binascii
import html
import inspect
import operator
import re
import string
import textwrap
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

MAX_LENGTH = 4_000
MAX_BITS = 512
MAX_SHIFT = 64

FAILURES = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError, zlib.error)
"""Exceptions that a wrong operand raises."""


def is_small(value: Any) -> bool:
    """Return True if the type and size of a value are within the limits."""
    if isinstance(value, str | bytes | tuple | list | dict | range):
        return len(value) <= MAX_LENGTH
    if isinstance(value, int):
        return value.bit_length() <= MAX_BITS
    return value is None or isinstance(value, float)


def _require_bounded(*sizes: int) -> None:
    total = 1
    for size in sizes:
        total *= max(size, 1)
    if total > MAX_LENGTH * 10:
        raise ValueError


def _add(one: Any, other: Any) -> Any:
    return one + other


def _multiply(one: Any, other: Any) -> Any:
    if isinstance(one, str | bytes | tuple):
        _require_bounded(len(one), other)
    elif isinstance(other, str | bytes | tuple):
        _require_bounded(len(other), one)
    return one * other


def _divide(one: Any, other: Any) -> Any:
    """Divide numbers; a text divided by a text is a path, because paths are represented as texts."""
    return join_path(one, other) if isinstance(one, str) else one / other


def _shift(one: int, by: int) -> int:
    if by > MAX_SHIFT:
        raise ValueError
    return one << by


def _power(one: int, by: int) -> int:
    if abs(by) > MAX_SHIFT or abs(one) > MAX_LENGTH:
        raise ValueError
    return one**by  # type: ignore[no-any-return]  # a small int


_PLACEHOLDER = re.compile(r"%(?:\(\w+\))?[a-zA-Z%]?")
_SPEC = re.compile(r"[<>^=]?[ +-]?#?0?\d{0,2},?(?:\.\d{1,2})?[bcdeEfFgGnosxX%]?")
_FIELD = re.compile(r"\{([^{}]*)\}|[{}]")


def _interpolate(text: Any, rest: Any) -> Any:
    if not isinstance(text, str | bytes):
        return text % rest
    # A width such as `%99999999s` would exhaust memory, so only bare placeholders are supported.
    plain = text if isinstance(text, str) else text.decode("latin-1")
    if any(placeholder in ("%", "%(") for placeholder in _PLACEHOLDER.findall(plain)):
        raise ValueError
    return text % rest


def _format(text: str, *rest: Any) -> str:
    for inside in _FIELD.findall(text.replace("{{", "").replace("}}", "")):
        name, _, spec = inside.partition(":")
        if (name and not name.isdigit()) or not _SPEC.fullmatch(spec):
            raise ValueError
    return text.format(*rest)


def format_value(value: Any, spec: Any) -> str:
    """Return `format(value, spec)` for a plain value and a spec with a small width."""
    if not _SPEC.fullmatch(spec) or not isinstance(value, str | int | float | bytes):
        raise ValueError
    return format(value, spec)


def _replace(text: Any, old: Any, new: Any, count: int = -1) -> Any:
    _require_bounded(len(text), len(new))
    return text.replace(old, new, count)


def _join(by: Any, parts: Any) -> Any:
    _require_bounded(len(by), len(parts))
    return by.join(parts)


def join_path(*parts: Any) -> str:
    """Join the parts as one path; an absolute part starts anew."""
    whole = ""
    for part in map(str, parts):
        whole = part if part.startswith("/") or not whole else f"{whole.rstrip('/')}/{part}"
    return whole


def _decode(data: Any, encoding: str = "utf-8", *_: Any) -> Any:
    plain = encoding.lower().replace("-", "_")
    if plain in _TEXT_CODECS:
        return data.decode(encoding, "replace") if isinstance(data, bytes) else data
    return _CODECS[plain](data)


def _encode(text: Any, encoding: str = "utf-8", *_: Any) -> Any:
    plain = encoding.lower().replace("-", "_")
    return text.encode(encoding, "replace") if plain in _TEXT_CODECS else _CODECS[plain](text)


def _decompress(data: bytes, *_: Any) -> bytes:
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
    "zlib": _decompress,
    "unicode_escape": lambda data: (data if isinstance(data, bytes) else data.encode()).decode("unicode_escape"),
}


def _bytes(value: Any = b"", *rest: Any) -> bytes:
    if isinstance(value, int):
        _require_bounded(value)
    return value.encode(*rest) if isinstance(value, str) else bytes(value)


def _range(*ends: int) -> tuple[int, ...]:
    _require_bounded(len(range(*ends)))
    return tuple(range(*ends))


def _zip(*parts: Any) -> tuple[Any, ...]:
    return tuple(zip(*parts, strict=False))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "chr": chr,
    "ord": ord,
    "textwrap.dedent": textwrap.dedent,
    "inspect.cleandoc": inspect.cleandoc,
    "str": lambda value="", *rest: _decode(value, *rest) if rest else str(value),
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
    "zip": _zip,
    "range": _range,
    "sum": sum,
    "min": min,
    "max": max,
    "format": lambda value, spec="": format_value(value, spec),
    "dict": dict,
    "str.join": _join,
    "bytes.fromhex": bytes.fromhex,
    "bytes.decode": _decode,
    "str.format": _format,
    "str.lower": str.lower,
    "str.upper": str.upper,
    "str.maketrans": str.maketrans,
    "str.replace": _replace,
    "str.__add__": _add,
    "bytearray.fromhex": bytes.fromhex,
    "operator.add": _add,
    "operator.concat": _add,
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
    "codecs.decode": _decode,
    "codecs.encode": _encode,
    "zlib.decompress": _decompress,
    "urllib.parse.unquote": unquote,
    "html.unescape": html.unescape,
    "os.path.join": join_path,
    "os.path.expanduser": str,
    "os.path.abspath": str,
    "os.path.realpath": str,
    "os.path.normpath": str,
    "os.fspath": str,
    "pathlib.Path": join_path,
    "pathlib.PurePath": join_path,
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
    "replace": _replace,
    "format": _format,
    "join": _join,
    "split": lambda text, *rest: tuple(text.split(*rest)),
    "splitlines": lambda text: tuple(text.splitlines()),
    "partition": lambda text, by: text.partition(by),
    "decode": _decode,
    "encode": _encode,
    "translate": lambda text, table: text.translate(table),
    "hex": lambda data: data.hex(),
    "get": lambda mapping, key, other=None: mapping.get(key, other),
    "keys": lambda mapping: tuple(mapping.keys()),
    "values": lambda mapping: tuple(mapping.values()),
    "items": lambda mapping: tuple(mapping.items()),
    "copy": lambda value: value,
    "index": lambda sequence, item: sequence.index(item),
    "find": lambda text, part: text.find(part),
    "__add__": _add,
    "__getitem__": operator.getitem,
    "joinpath": join_path,
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
    ast.Add: _add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _interpolate,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: _shift,
    ast.RShift: operator.rshift,
    ast.Pow: _power,
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
    """Return the function of a unary operator or a single comparison; chained comparisons are not supported."""
    if isinstance(node, ast.UnaryOp):
        return UNARY[type(node.op)]
    return COMPARISONS.get(type(node.ops[0]), _never) if len(node.ops) == 1 else _never


def _never(*_: Any) -> Any:
    raise ValueError
