"""Which message it is: by what the caller says, what the document says, and the tables that there are."""

import json
import re
from collections.abc import Mapping
from typing import Any

from qwed.packs.result import Unreadable, unknown
from qwed_finance._iso.node import Findings, Node
from qwed_finance._iso.schema import NAMESPACE, Message, messages, type_of
from qwed_finance._iso.structure import examine
from qwed_finance._iso.tree import namespace_of, read_tree
from qwed_finance._iso.xml import MOST_BYTES, read_xml

_PREFERRED = ("08", "02", "03", "09", "10", "12", "11", "13", "14", "15")
"""The versions that are most in use: a JSON object without a namespace is read as the first that it fits."""
_NAME = re.compile(r"[a-z]{4}\.[0-9]{3}(?:\.[0-9]{3}\.[0-9]{2})?", re.ASCII)


class Read:
    """A message that was read: what it is, its tree, and what was found on the way."""

    def __init__(self, message: Message, document: Node, found: Findings) -> None:
        self.message = message
        self.document = document
        self.found = found


class Mismatch(Exception):
    """The document is not what it was given as."""


def candidates(msg_type: Any) -> list[Message]:
    """The messages that a name means: one where it has a version, else all of its versions."""
    if not isinstance(msg_type, str):
        raise Unreadable("`msg_type` must be a text such as `pacs.008` or `pacs.008.001.08`")
    wanted = msg_type.strip().lower().replace("_", ".")
    found = [each for each in messages().values() if wanted in (each.name, each.family)]
    if not _NAME.fullmatch(wanted) or not found:
        families = sorted({each.family for each in messages().values()})
        versions = [each.name for each in messages().values() if each.family == wanted[:8]]
        raise unknown("message type", msg_type, versions or families)
    return sorted(found, key=lambda each: _rank(each.name[-2:]))


def _rank(version: str) -> int:
    return _PREFERRED.index(version) if version in _PREFERRED else len(_PREFERRED)


def read(given: Any, msg_type: Any) -> Read:
    """The message and everything that is wrong with its structure."""
    wanted = candidates(msg_type)
    if isinstance(given, bytearray | memoryview):
        given = bytes(given)
    if isinstance(given, str) and given.lstrip()[:1] == "{":
        given = _json(given)
    if isinstance(given, Mapping):
        return _of_tree(given, wanted)
    if isinstance(given, str | bytes) and given.strip():
        return _of_xml(given, wanted)
    raise Unreadable("`message` must be XML as a text or bytes, or an object keyed by the names of its elements")


def _of_xml(given: str | bytes, wanted: list[Message]) -> Read:
    document = read_xml(given)
    message = _named(document.namespace, wanted)
    if document.root.name != "Document":
        raise Mismatch(f"the root of a message is `Document`, not `{document.root.name[:40]}`")
    return _examined(message, document.root)


def _named(namespace: str, wanted: list[Message]) -> Message:
    """The message of a namespace, where it is one of those wanted."""
    if not namespace.startswith(NAMESPACE):
        shown = f"`{namespace[:80]}`" if namespace else "no namespace"
        raise Mismatch(f"it is in {shown}, `{wanted[0].namespace}` is one for `{wanted[0].family}`")
    name = namespace.removeprefix(NAMESPACE)
    found = messages().get(name)
    if found is None and name[:8] == wanted[0].family:
        raise unknown("version", name, [each.name for each in messages().values() if each.family == name[:8]])
    if found is None or found not in wanted:
        raise Mismatch(f"it is in the namespace of `{name[:40]}`, not of `{_asked(wanted)}`")
    return found


def _asked(wanted: list[Message]) -> str:
    return wanted[0].name if len(wanted) == 1 else wanted[0].family


def _of_tree(given: Mapping[Any, Any], wanted: list[Message]) -> Read:
    namespace = namespace_of(given)
    if namespace is not None:
        return _tree_as(given, _named(namespace, wanted))
    if len(wanted) == 1:
        return _tree_as(given, wanted[0])
    return _tree_as(given, _nearest(given, wanted))


def _nearest(given: Mapping[Any, Any], wanted: list[Message]) -> Message:
    """The first message that an object fits, or the one that it fits best."""
    wrong: dict[int, Message] = {}
    for each in wanted:
        many = len(_examined(each, read_tree(given, each, sample=True)).found.wrong)
        wrong.setdefault(many, each)
        if not many:
            break
    return wrong[min(wrong)]


def _tree_as(given: Mapping[Any, Any], message: Message) -> Read:
    return _examined(message, read_tree(given, message))


def _examined(message: Message, document: Node) -> Read:
    found = Findings()
    if [each.name for each in document.children] != [message.root]:
        names = ", ".join(f"`{each.name[:40]}`" for each in document.children[:8]) or "nothing"
        found.fail(document, "structure", f"`Document` of `{message.name}` holds `{message.root}`, not {names}")
        return Read(message, document, found)
    if document.attributes:
        found.fail(document, "structure", f"`Document` has no attribute `{next(iter(document.attributes))[:40]}`")
    examine(document.children[0], type_of(message.kind), found)
    return Read(message, document, found)


def _json(text: str) -> Any:
    if len(text) > MOST_BYTES:
        raise Unreadable(f"a message of more than {MOST_BYTES:,} characters is not looked at")
    try:
        return json.loads(text, object_pairs_hook=_members, parse_constant=_constant)
    except RecursionError:
        raise Unreadable("the message has objects too deep in one another") from None
    except ValueError as wrong:
        if isinstance(wrong, Unreadable):
            raise
        raise Unreadable("`message` is neither XML nor JSON") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unreadable("the message names a member twice in one object")
    return found


def _constant(name: str) -> Any:
    raise Unreadable(f"`{name}` is no number")
