"""Message identification by the requested type, the namespace and the schema tables."""

import json
import re
from collections.abc import Mapping
from typing import Any

from qwed.model.strict_json import rejected, unique_members
from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed_finance._iso.json_reader import namespace_of, parse_json_message
from qwed_finance._iso.node import Element, MessageIssues
from qwed_finance._iso.schema import NAMESPACE, MessageDefinition, message_definitions, type_of
from qwed_finance._iso.structure import check_structure
from qwed_finance._iso.xml_reader import MAX_BYTES, parse_xml

_PREFERRED = ("08", "02", "03", "09", "10", "12", "11", "13", "14", "15")
"""Versions in order of use; a JSON object without a namespace is parsed as the first version that it fits."""
_ASSUMED = "pacs.008"
"""Family of a JSON object that has neither a type, nor a namespace, nor a root element."""
_NAME = re.compile(r"[a-z]{4}\.[0-9]{3}(?:\.[0-9]{3}\.[0-9]{2})?", re.ASCII)


class ParsedMessage:
    """Parsed message: its definition, its tree, and the issues found."""

    def __init__(self, message: MessageDefinition, document: Element, issues: MessageIssues) -> None:
        self.message = message
        self.document = document
        self.issues = issues


class MessageMismatchError(Exception):
    """The document is not of the requested message type."""


def candidate_messages(msg_type: Any) -> list[MessageDefinition]:
    """Return the messages that a name means: one if it has a version, otherwise all versions; all messages for None."""
    if msg_type is None:
        return sorted(message_definitions().values(), key=lambda definition: (definition.family, _rank(definition)))
    if not isinstance(msg_type, str):
        raise UnreadableInputError("`msg_type` must be a text such as `pacs.008` or `pacs.008.001.08`")
    name = msg_type.strip().lower().replace("_", ".")
    definitions = [
        definition for definition in message_definitions().values() if name in (definition.name, definition.family)
    ]
    if not _NAME.fullmatch(name) or not definitions:
        raise unknown_name_error("message type", msg_type, _versions_of(name[:8]) or _families())
    return sorted(definitions, key=_rank)


def _families() -> list[str]:
    return sorted({definition.family for definition in message_definitions().values()})


def _versions_of(family: str) -> list[str]:
    return [definition.name for definition in message_definitions().values() if definition.family == family]


def _rank(definition: MessageDefinition) -> int:
    version = definition.name[-2:]
    return _PREFERRED.index(version) if version in _PREFERRED else len(_PREFERRED)


def parse_message(content: Any, msg_type: Any) -> ParsedMessage:
    """Parse the message and collect every error of its structure."""
    definitions = candidate_messages(msg_type)
    if isinstance(content, bytearray | memoryview):
        content = bytes(content)
    if isinstance(content, str) and content.lstrip()[:1] == "{":
        content = _load_json(content)
    if isinstance(content, Mapping):
        return _parse_json(content, definitions)
    if isinstance(content, str | bytes) and content.strip():
        return _parse_xml(content, definitions)
    raise UnreadableInputError(
        "`message` must be XML as a text or bytes, or an object keyed by the names of its elements"
    )


def _parse_xml(content: str | bytes, definitions: list[MessageDefinition]) -> ParsedMessage:
    document = parse_xml(content)
    message = _message_of_namespace(document.namespace, definitions)
    if document.root.name != "Document":
        raise MessageMismatchError(f"the root of a message is `Document`, not `{document.root.name[:40]}`")
    return _examine(message, document.root)


def _message_of_namespace(namespace: str, definitions: list[MessageDefinition]) -> MessageDefinition:
    """Return the message of a namespace if it is one of the requested ones."""
    if not namespace.startswith(NAMESPACE):
        described = f"`{namespace[:80]}`" if namespace else "no namespace"
        raise MessageMismatchError(
            f"it is in {described}, `{definitions[0].namespace}` is one for `{definitions[0].family}`"
        )
    name = namespace.removeprefix(NAMESPACE)
    definition = message_definitions().get(name)
    if definition is None and any(candidate.family == name[:8] for candidate in definitions):
        raise unknown_name_error("version", name, _versions_of(name[:8]))
    requested = common_name(definitions)
    if definition is None and requested is None:
        raise unknown_name_error("message type", name, _families())
    if definition is None or definition not in definitions:
        raise MessageMismatchError(f"it is in the namespace of `{name[:40]}`, not of `{requested}`")
    return definition


def common_name(definitions: list[MessageDefinition]) -> str | None:
    """Return the name of the only message, the family of several, or None if they have no family in common."""
    if len(definitions) == 1:
        return definitions[0].name
    families = {definition.family for definition in definitions}
    return definitions[0].family if len(families) == 1 else None


def _parse_json(content: Mapping[Any, Any], definitions: list[MessageDefinition]) -> ParsedMessage:
    namespace = namespace_of(content)
    if namespace is not None:
        return _parse_json_as(content, _message_of_namespace(namespace, definitions))
    if common_name(definitions) is None:
        definitions = _family_of_root(content, definitions)
    if len(definitions) == 1:
        return _parse_json_as(content, definitions[0])
    return _parse_json_as(content, _best_match(content, definitions))


def _family_of_root(content: Mapping[Any, Any], definitions: list[MessageDefinition]) -> list[MessageDefinition]:
    """Return the messages whose root element the object has, or those of the assumed family."""
    inner = content.get("Document", content)
    names = frozenset(name for name in inner if isinstance(name, str)) if isinstance(inner, Mapping) else frozenset()
    matching = [definition for definition in definitions if definition.root in names]
    return matching or [definition for definition in definitions if definition.family == _ASSUMED]


def _best_match(content: Mapping[Any, Any], definitions: list[MessageDefinition]) -> MessageDefinition:
    """Return the first message that an object fits, or the one with the fewest errors."""
    by_error_count: dict[int, MessageDefinition] = {}
    for definition in definitions:
        error_count = len(_examine(definition, parse_json_message(content, definition, sample=True)).issues.errors)
        by_error_count.setdefault(error_count, definition)
        if not error_count:
            break
    return by_error_count[min(by_error_count)]


def _parse_json_as(content: Mapping[Any, Any], message: MessageDefinition) -> ParsedMessage:
    return _examine(message, parse_json_message(content, message))


def _examine(message: MessageDefinition, document: Element) -> ParsedMessage:
    issues = MessageIssues()
    if [child.name for child in document.children] != [message.root]:
        names = ", ".join(f"`{child.name[:40]}`" for child in document.children[:8]) or "nothing"
        issues.fail(document, "structure", f"`Document` of `{message.name}` holds `{message.root}`, not {names}")
        return ParsedMessage(message, document, issues)
    if document.attributes:
        issues.fail(document, "structure", f"`Document` has no attribute `{next(iter(document.attributes))[:40]}`")
    check_structure(document.children[0], type_of(message.kind), issues)
    return ParsedMessage(message, document, issues)


def _load_json(text: str) -> Any:
    if len(text) > MAX_BYTES:
        raise UnreadableInputError(f"a message of more than {MAX_BYTES:,} characters is not accepted")
    try:
        return _decode(text)
    except RecursionError:
        raise UnreadableInputError("the message is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, UnreadableInputError):
            raise
        raise UnreadableInputError("`message` is neither XML nor JSON") from None


_decode = json.JSONDecoder(
    object_pairs_hook=unique_members(lambda _: UnreadableInputError("the message names a member twice in one object")),
    parse_constant=rejected(lambda text: UnreadableInputError(f"`{text}` is not a number")),
).decode
