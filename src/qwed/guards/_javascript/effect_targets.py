"""Targets of library calls: the file, the URL, the key."""

import re
from collections.abc import Iterator

from qwed.guards._javascript.abstract_values import NO_VALUE, Func, Literal, Value, constants, texts
from qwed.guards._javascript.calls import arguments_of
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.syntax_tree import SyntaxNode
from qwed.model import EffectKind

MAX_TARGETS = 4

_FROM_TO = words("copyFile copyFileSync cp cpSync copy copySync")
_TWO_PLACES = words("rename renameSync link linkSync symlink symlinkSync move moveSync")
_OPENING = words("open openSync")
_ADDRESS_KEYS = ("url", "uri", "hostname", "host", "baseURL")
_SENSITIVE_KEY = re.compile(r"(?i)token|secret|passw|jwt|auth|session|credential|api_?key|private")
_READING = re.compile(r"rs?|sr")


def targets_of(kind: EffectKind, path: str, node: SyntaxNode) -> Iterator[tuple[EffectKind, str]]:
    """Yield the effects of using `path` at `node` with their targets; "" if the target is unknown."""
    arguments = _call_arguments(path, node)
    name = path.removesuffix(".call").removesuffix(".apply").rpartition(".")[2]
    first = _text(arguments[0]) if arguments else ""
    if name in _FROM_TO and len(arguments) > 1:
        yield EffectKind.READ, first
        yield kind, _text(arguments[1])
    elif name in _TWO_PLACES and len(arguments) > 1:
        yield kind, first
        yield kind, _text(arguments[1])
    elif name in _OPENING and path.startswith(("fs.", "Deno.")):
        yield (EffectKind.READ if _opens_to_read(arguments[1:2]) else EffectKind.WRITE), first
    else:
        yield kind, first
    if "Storage" in path and _SENSITIVE_KEY.search(first):
        yield EffectKind.SECRET, first


def _call_arguments(path: str, node: SyntaxNode) -> list[SyntaxNode]:
    """Return the arguments of the call whose function is `node`."""
    outer = node
    while outer.parent is not None and outer.parent.kind in ("parenthesized_expression", "await_expression"):
        outer = outer.parent
    call = outer.parent
    if call is None or outer.role not in ("function", "constructor"):
        return _assigned_value(outer) if path.startswith("Image()") else []
    arguments = arguments_of(call)
    if path.endswith(".call"):
        return arguments[1:]
    if path.endswith(".apply"):
        inside = [
            atom.node for argument in arguments[1:2] for atom in argument.value or () if isinstance(atom, Literal)
        ]
        return inside[0].children if inside else []
    return arguments


def _assigned_value(node: SyntaxNode) -> list[SyntaxNode]:
    """Return the right side of `image.src = address`."""
    parent = node.parent
    right = parent.get("right") if parent is not None and node.role == "left" else None
    return [right] if right is not None else []


def _text(node: SyntaxNode) -> str:
    value: Value = node.value or NO_VALUE
    targets = texts(value)[:MAX_TARGETS]
    if not targets:
        targets = [text for atom in value if isinstance(atom, Literal) for text in _address(atom.node)][:1]
    return " | ".join(targets)


def _address(literal: SyntaxNode) -> Iterator[str]:
    """Yield the URL in the options of a request."""
    for pair in literal.children:
        key, value = pair.get("key"), pair.get("value")
        if key is not None and value is not None and key.text in _ADDRESS_KEYS:
            yield from texts(value.value or NO_VALUE)


def _opens_to_read(flags: list[SyntaxNode]) -> bool:
    if not flags or any(isinstance(atom, Func) for atom in flags[0].value or ()):
        return True
    modes = constants(flags[0].value or NO_VALUE)
    return len(modes) == len(flags[0].value or ()) > 0 and all(_READING.fullmatch(str(mode)) for mode in modes)
