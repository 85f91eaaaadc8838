"""Reader for one message: its parts, their content, and nested content."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qwed_a2a.message import PayloadType
from qwed_a2a.parsing import code_detection, embedded_json, files, object_kinds
from qwed_a2a.parsing.code_fences import Fence, html_code_blocks, split_fences
from qwed_a2a.parsing.language_detection import (
    BINARY,
    NOTEBOOK,
    PROMPT,
    is_binary,
    language_named,
    language_of,
    language_of_name,
    script_language,
)
from qwed_a2a.parsing.parse_limits import MAX_PARTS, MessageParseError, ParseBudget, require_depth, require_text_nesting
from qwed_a2a.parsing.payload_types import (
    NO_METADATA,
    Contents,
    DataPart,
    FilePart,
    Part,
    Payload,
    TextPart,
    UnparsableMessage,
)

DECLARED = "payload_type"


def read_parts(parts: Sequence[Part], metadata: Mapping[str, Any] = NO_METADATA) -> Contents | UnparsableMessage:
    """Return the payloads of a message in order, or UnparsableMessage if it is over a limit or ambiguous."""
    reader = _Reader()
    try:
        if len(parts) > MAX_PARTS:
            raise MessageParseError(f"the message has more than {MAX_PARTS} parts, split it")
        for part in parts:
            reader.read_part(part)
        reader.read_metadata(metadata)
        reader.add_declared(metadata, parts)
    except MessageParseError as error:
        return UnparsableMessage(str(error))
    return reader.contents()


@dataclass(slots=True)
class _Reader:
    budget: ParseBudget = field(default_factory=ParseBudget)
    payloads: list[Payload] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    payload_count: int = 0
    """Payloads found so far, including duplicates."""

    def contents(self) -> Contents:
        text = "\n".join(filter(str.strip, self.texts))
        rest = {"text": text, "data": self.values, "files": self.files}
        rest_members = {name: value for name, value in rest.items() if value}
        payloads = (
            [*self.payloads, Payload(PayloadType.GENERAL, rest_members)]
            if rest_members or not self.payloads
            else self.payloads
        )
        return Contents(tuple(payloads), text)

    def read_part(self, part: Part) -> None:
        since = len(self.payloads)
        if isinstance(part, TextPart):
            self._read_text_part(part)
        elif isinstance(part, DataPart):
            self._read_data_part(part.value)
        else:
            self._read_file_part(part)
        self.read_metadata(part.metadata)
        self.add_declared(part.metadata, (part,), since)

    def read_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Read the metadata, which the recipient gets too."""
        self.read_value(metadata, 0, 0)

    def add_declared(self, metadata: Mapping[str, Any], parts: Sequence[Part], since: int = 0) -> None:
        """Add the payload type that the sender declares: it can add a check, never remove one."""
        declared_type = metadata.get(DECLARED)
        if declared_type is None:
            return
        kind = _KINDS.get(declared_type.strip().lower()) if isinstance(declared_type, str) else None
        if kind is None:
            raise MessageParseError(
                f"unknown `{DECLARED}` `{str(declared_type)[:40]}`, known are {', '.join(PayloadType)}"
            )
        if kind not in _UNCHECKED and all(payload.kind is not kind for payload in self.payloads[since:]):
            for part in parts:
                self._add(kind, _declared_payload(kind, part))

    def _read_text_part(self, part: TextPart) -> None:
        language = language_of(part.name, part.media_type)
        if language is None:
            self._keep_rest(part.text, self.read_text(part.text, 0))
        else:
            self._add_program(part.text, language, 0)

    def _keep_rest(self, text: str, left: str | None) -> None:
        self.texts.append(text if left is None else left)

    def _read_data_part(self, value: Any) -> None:
        before = self.payload_count
        self.read_value(value, 0, 0)
        if self.payload_count == before:
            self.values.append(value)

    def _read_file_part(self, part: FilePart) -> None:
        inline = files.decode_data_url(part.url) if part.url else None
        content, media_type = part.content, part.media_type
        if content is None and not part.url:
            content = b""
        if inline is not None:
            content, media_type = inline.content, media_type or inline.media_type
        before = self.payload_count
        names = (part.name, _last_path_segment(part.url) if inline is None else "")
        self._read_file(content, next(filter(language_of_name, names), part.name or names[1]), media_type)
        if self.payload_count == before:
            url = part.url if inline is None else ""
            self.files.append(files.file_summary(content, url, part.name, media_type))

    def _read_file(self, content: bytes | None, name: str, media_type: str, inside: int = 0) -> None:
        language = language_of(name, media_type)
        if language == BINARY or (content is not None and is_binary(content)):
            raise MessageParseError(f"`{name[:40]}` is a program that cannot be read, send its source")
        if content is None:
            if language is not None:
                raise MessageParseError(f"code behind a URL cannot be read, send `{name[:40]}` in the message")
            return
        text = (
            files.decode_text(content, media_type, name) if language is None else files.decode_text(content, media_type)
        )
        if text is not None:
            (self.read_text(text, inside) if language is None else self._add_program(text, language, inside))
        elif language is not None:
            raise MessageParseError(f"`{name[:40]}` is declared as code and is not text, send it as UTF-8")

    def read_text(self, text: str, inside: int) -> str | None:
        """Return the rest of a text without its payloads, or None if it has none."""
        require_text_nesting(inside)
        self.budget.take("characters", len(text))
        plain = _LINE_END.sub("\n", text.lstrip("\ufeff"))
        before = self.payload_count
        left = self._read_whole_text(plain, inside)
        if left is None:
            left = "\n".join(self._read_piece(piece, inside) for piece in split_fences(plain, self.budget))
        return left if self.payload_count > before else None

    def _read_whole_text(self, text: str, inside: int) -> str | None:
        """Read a text that is one JSON value, script or program, and return the rest; None if it is not."""
        bare = text.strip()
        value = embedded_json.parse_whole(bare)
        if value is not None:
            self.read_value(value[0], 0, inside)
            return ""
        language = script_language(bare)
        if language is not None:
            self._add_program(bare, language, inside)
            return ""
        return None

    def _read_piece(self, piece: str | Fence, inside: int) -> str:
        return self._read_fence(piece, inside) if isinstance(piece, Fence) else self._read_prose(piece, inside)

    def _read_fence(self, fence: Fence, inside: int) -> str:
        language = language_named(fence.word)
        if language is not None:
            self._add_program(fence.body, language, inside)
            return ""
        before = self.payload_count
        left = self.read_text(fence.body, inside + 1)
        commands = code_detection.command_language(fence.body) if self.payload_count == before else None
        if commands is not None:
            self._add_program(fence.body, commands, inside)
            return ""
        if self.payload_count == before and code_detection.is_fenced_program(fence.body, self.budget):
            self._add(PayloadType.CODE_EXECUTION, {"code": fence.body})
            return ""
        return fence.written if left is None else left

    def _read_prose(self, prose: str, inside: int) -> str:
        pieces_left, position = [], 0
        for match in embedded_json.find_objects(prose, self.budget):
            before = self.payload_count
            self.read_value(match.value, 0, inside)
            if self.payload_count > before:
                pieces_left.append(prose[position : match.start])
                position = match.end
        rest = "".join((*pieces_left, prose[position:]))
        embedded_json.reject_unparsed_members(rest)
        for element in html_code_blocks(rest, self.budget):
            self._read_fence(element, inside)
        self._read_data_urls(rest, inside)
        program = code_detection.find_program(rest, self.budget)
        if program is None:
            return rest
        self._add(PayloadType.CODE_EXECUTION, {"code": program})
        return "" if program == rest else rest

    def _read_data_urls(self, prose: str, inside: int) -> None:
        for match in files.DATA_URL.finditer(prose) if "data:" in prose.lower() else ():
            self.budget.take("fences")
            inline = files.data_url_content(match)
            if inline is not None:
                self._read_file(inline.content, "", inline.media_type, inside + 1)

    def _add_program(self, text: str, language: str, inside: int) -> None:
        """Add a text that is marked as code."""
        self.budget.take("characters", len(text))
        if language == NOTEBOOK:
            self._read_notebook(text, inside)
        elif language == "console":
            self._add(PayloadType.CODE_EXECUTION, {"code": _terminal_input(text), "language": "bash"})
        elif language == PROMPT:
            code = "\n".join(_PROMPTED.findall(text)) or text
            self._add(PayloadType.CODE_EXECUTION, {"code": code, "language": "python"})
        elif text.strip():
            code = text.lstrip("\ufeff")
            self._add(PayloadType.CODE_EXECUTION, {"code": code, "language": language})

    def _read_notebook(self, text: str, inside: int) -> None:
        value = embedded_json.parse_whole(text.lstrip("\ufeff").strip())
        if value is None or files.notebook_code(value[0]) is None:
            raise MessageParseError("a notebook cannot be read, send it as JSON with its `cells`")
        self.read_value(value[0], 0, inside)

    def read_value(self, value: Any, depth: int, inside: int) -> None:
        """Add the payloads in a JSON value."""
        require_depth(depth)
        self.budget.take("values")
        if isinstance(value, str):
            if _MAY_HOLD_TEXT.search(value) or (_MAY_BE_CODE.search(value) and code_detection.has_effect_words(value)):
                self.read_text(value, inside + 1)
        elif isinstance(value, Mapping):
            self._read_object(value, depth, inside)
        elif isinstance(value, list | tuple):
            for item in value:
                self.read_value(item, depth + 1, inside)

    def _read_object(self, value: Mapping[str, Any], depth: int, inside: int) -> None:
        program = files.notebook_code(value)
        if program:
            self._add(PayloadType.CODE_EXECUTION, program)
        members = object_kinds.folded_members(value)
        own = object_kinds.payloads_of(value, members)
        for payload in own:
            self._add(*payload)
        self._read_file_object(members, inside)
        taken = {"code"} if any(payload.kind is PayloadType.CODE_EXECUTION for payload in own) else set()
        for name, member in value.items():
            if len(name) > _LONG_NAME:
                self.read_value(name, depth + 1, inside)
            if object_kinds.fold_name(name) not in taken and not (program and name == "cells"):
                self.read_value(member, depth + 1, inside)

    def _read_file_object(self, members: Mapping[str, Any], inside: int) -> None:
        """Read an object that describes a file or program: content in one member, its type in another."""
        file = object_kinds.file_object(members)
        declared_language = file.language or language_of(file.name, file.media_type)
        for body in file.bodies:
            language = declared_language or (code_detection.command_language(body) if body in file.commands else None)
            if language is not None:
                self._add_program(body, language, inside)
        if file.packed is not None:
            self._read_file(file.packed, file.name, file.media_type, inside + 1)

    def _add(self, kind: PayloadType, payload: dict[str, Any]) -> None:
        self.payload_count += 1
        if (kind, payload) not in self.payloads:
            self.budget.take("payloads")
            self.payloads.append(Payload(kind, payload))


_KINDS = {kind.value: kind for kind in PayloadType}
_UNCHECKED = frozenset({PayloadType.GENERAL})
_LINE_END = re.compile(r"\r\n|[\r\v\x1c-\x1e\x85\u2028\u2029]")
"""Characters that end a line for some reader; a form feed is a blank to Python."""
_LONG_NAME = 16
"""Length from which a member name is read as text itself."""
_PROMPTED = re.compile(r"(?m)^[ \t]*(?:>>>|\.\.\.) (.*)$")
_MAY_HOLD_TEXT = re.compile(r"[{]|```|~~~|data:|#!", re.IGNORECASE)
_MAY_BE_CODE = re.compile(r"[(\[]|import")
"""Marks of a text that is more than a word or a sentence, and of a program."""


def _last_path_segment(url: str) -> str:
    """Return the last path segment of a URL; a host is not one."""
    _, scheme, rest = url.rpartition("://")
    path = rest.partition("/")[2] if scheme else rest
    return path.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2]


def _terminal_input(text: str) -> str:
    """Return the lines after a prompt in a terminal transcript, or all lines if there is no prompt."""
    lines = [line.strip() for line in text.split("\n")]
    typed = [line[2:] for line in lines if line[:2] in ("$ ", "# ", "% ")]
    return "\n".join(typed or lines)


def _declared_payload(kind: PayloadType, part: Part) -> dict[str, Any]:
    value = part.value if isinstance(part, DataPart) else _text_content(part)
    if isinstance(value, str):
        parsed = None if kind is PayloadType.CODE_EXECUTION else embedded_json.parse_whole(value.strip())
        value = value if parsed is None else parsed[0]
    if isinstance(value, Mapping):
        return dict(value)
    return {_PAYLOAD_MEMBER.get(kind, "text"): value}


_PAYLOAD_MEMBER = {
    PayloadType.CODE_EXECUTION: "code",
    PayloadType.LOGIC_ASSERTION: "assertions",
    PayloadType.FINANCIAL_TRANSACTION: "data",
}


def _text_content(part: TextPart | FilePart) -> str:
    if isinstance(part, TextPart):
        return part.text
    return files.decode_text(part.content or b"", part.media_type) or ""
