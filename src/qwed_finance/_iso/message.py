"""Message identification by the requested type, the namespace and the schema tables."""

import json
import re
from collections.abc import Mapping
from typing import Any

from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed_finance._iso.json_reader import namespace_of, parse_json_message
from qwed_finance._iso.node import Element, MessageIssues
from qwed_finance._iso.schema import NAMESPACE, MessageDefinition, message_definitions, type_of
from qwed_finance._iso.structure import check_structure
from qwed_finance._iso.xml_reader import MAX_BYTES, parse_xml

_PREFERRED = ("08", "02", "03", "09", "10", "12", "11", "13", "14", "15")
"""Versions in order of use; a JSON object without a namespace is parsed as the first version that it fits."""
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
    """Return the messages that a name means: one if it has a version, otherwise all versions."""
    if not isinstance(msg_type, str):
        raise UnreadableInputError("`msg_type` must be a text such as `pacs.008` or `pacs.008.001.08`")
    name = msg_type.strip().lower().replace("_", ".")
    definitions = [
        definition for definition in message_definitions().values() if name in (definition.name, definition.family)
    ]
    if not _NAME.fullmatch(name) or not definitions:
        families = sorted({definition.family for definition in message_definitions().values()})
        versions = [definition.name for definition in message_definitions().values() if definition.family == name[:8]]
        raise unknown_name_error("message type", msg_type, versions or families)
    return sorted(definitions, key=lambda definition: _rank(definition.name[-2:]))


def _rank(version: str) -> int:
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
    if definition is None and name[:8] == definitions[0].family:
        raise unknown_name_error(
            "version",
            name,
            [candidate.name for candidate in message_definitions().values() if candidate.family == name[:8]],
        )
    if definition is None or definition not in definitions:
        raise MessageMismatchError(f"it is in the namespace of `{name[:40]}`, not of `{_requested_name(definitions)}`")
    return definition


def _requested_name(definitions: list[MessageDefinition]) -> str:
    return definitions[0].name if len(definitions) == 1 else definitions[0].family


def _parse_json(content: Mapping[Any, Any], definitions: list[MessageDefinition]) -> ParsedMessage:
    namespace = namespace_of(content)
    if namespace is not None:
        return _parse_json_as(content, _message_of_namespace(namespace, definitions))
    if len(definitions) == 1:
        return _parse_json_as(content, definitions[0])
    return _parse_json_as(content, _best_match(content, definitions))


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
        return json.loads(text, object_pairs_hook=_object_with_unique_keys, parse_constant=_reject_constant)
    except RecursionError:
        raise UnreadableInputError("the message is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, UnreadableInputError):
            raise
        raise UnreadableInputError("`message` is neither XML nor JSON") from None


def _object_with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise UnreadableInputError("the message names a member twice in one object")
    return members


def _reject_constant(name: str) -> Any:
    raise UnreadableInputError(f"`{name}` is not a number")
