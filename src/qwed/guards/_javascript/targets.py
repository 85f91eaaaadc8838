"""What a call of a library does it to: the file, the address, the key."""

import re
from collections.abc import Iterator

from qwed.guards._javascript.atoms import NOTHING, Func, Literal, Value, constants, texts
from qwed.guards._javascript.calls import arguments_of
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.tree import Node
from qwed.words import EffectKind

MAX_TARGETS = 4

_FROM_TO = words("copyFile copyFileSync cp cpSync copy copySync")
_TWO_PLACES = words("rename renameSync link linkSync symlink symlinkSync move moveSync")
_OPENING = words("open openSync")
_ADDRESS_KEYS = ("url", "uri", "hostname", "host", "baseURL")
_SENSITIVE_KEY = re.compile(r"(?i)token|secret|passw|jwt|auth|session|credential|api_?key|private")
_READING = re.compile(r"rs?|sr")


def targets_of(kind: EffectKind, path: str, node: Node) -> Iterator[tuple[EffectKind, str]]:
    """The effects of using `path` where `node` names it, each with its target; no target where that is unknown."""
    arguments = _given(path, node)
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


def _given(path: str, node: Node) -> list[Node]:
    """The arguments of the call that `node` is the function of."""
    here = node
    while here.parent is not None and here.parent.kind in ("parenthesized_expression", "await_expression"):
        here = here.parent
    call = here.parent
    if call is None or here.role not in ("function", "constructor"):
        return _assigned(here) if path.startswith("Image()") else []
    arguments = arguments_of(call)
    if path.endswith(".call"):
        return arguments[1:]
    if path.endswith(".apply"):
        inside = [atom.node for each in arguments[1:2] for atom in each.value or () if isinstance(atom, Literal)]
        return inside[0].children if inside else []
    return arguments


def _assigned(node: Node) -> list[Node]:
    """`image.src = address`."""
    parent = node.parent
    right = parent.get("right") if parent is not None and node.role == "left" else None
    return [right] if right is not None else []


def _text(node: Node) -> str:
    known: Value = node.value or NOTHING
    found = texts(known)[:MAX_TARGETS]
    if not found:
        found = [text for atom in known if isinstance(atom, Literal) for text in _address(atom.node)][:1]
    return " | ".join(found)


def _address(literal: Node) -> Iterator[str]:
    """The address in the options of a request."""
    for pair in literal.children:
        key, value = pair.get("key"), pair.get("value")
        if key is not None and value is not None and key.text in _ADDRESS_KEYS:
            yield from texts(value.value or NOTHING)


def _opens_to_read(flags: list[Node]) -> bool:
    if not flags or any(isinstance(atom, Func) for atom in flags[0].value or ()):
        return True
    known = constants(flags[0].value or NOTHING)
    return len(known) == len(flags[0].value or ()) > 0 and all(_READING.fullmatch(str(each)) for each in known)
