"""One message read whole: its parts, what they hold, and what is inside that again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qwed_a2a.message import PayloadType
from qwed_a2a.payloads import files, json_text, objects, sniffing
from qwed_a2a.payloads.budget import MAX_PARTS, Budget, Over, require_depth, require_inside
from qwed_a2a.payloads.fences import Fence, elements, pieces
from qwed_a2a.payloads.languages import (
    BINARY,
    NOTEBOOK,
    PROMPT,
    is_binary,
    language_named,
    language_of,
    language_of_name,
    script_language,
)
from qwed_a2a.payloads.parts import NOTHING, Contents, DataPart, FilePart, Part, Payload, TextPart, Unread

DECLARED = "payload_type"


def read_parts(parts: Sequence[Part], metadata: Mapping[str, Any] = NOTHING) -> Contents | Unread:
    """The payloads of a message, in order; Unread where it is over a limit or reads in two ways."""
    reader = _Reader()
    try:
        if len(parts) > MAX_PARTS:
            raise Over(f"the message has more than {MAX_PARTS} parts, split it")
        for part in parts:
            reader.part(part)
        reader.about(metadata)
        reader.declared(metadata, parts)
    except Over as over:
        return Unread(str(over))
    return reader.contents()


@dataclass(slots=True)
class _Reader:
    budget: Budget = field(default_factory=Budget)
    found: list[Payload] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    met: int = 0
    """Payloads so far, those that were found before among them."""

    def contents(self) -> Contents:
        text = "\n".join(filter(str.strip, self.texts))
        rest = {"text": text, "data": self.values, "files": self.files}
        left = {name: held for name, held in rest.items() if held}
        payloads = [*self.found, Payload(PayloadType.GENERAL, left)] if left or not self.found else self.found
        return Contents(tuple(payloads), text)

    def part(self, part: Part) -> None:
        since = len(self.found)
        if isinstance(part, TextPart):
            self._texted(part)
        elif isinstance(part, DataPart):
            self._valued(part.value)
        else:
            self._filed(part)
        self.about(part.metadata)
        self.declared(part.metadata, (part,), since)

    def about(self, metadata: Mapping[str, Any]) -> None:
        """What is said beside the content goes to the recipient too."""
        self.value(metadata, 0, 0)

    def declared(self, metadata: Mapping[str, Any], parts: Sequence[Part], since: int = 0) -> None:
        """What the sender says it is: one more check, never one less."""
        said = metadata.get(DECLARED)
        if said is None:
            return
        kind = _KINDS.get(said.strip().lower()) if isinstance(said, str) else None
        if kind is None:
            raise Over(f"unknown `{DECLARED}` `{str(said)[:40]}`, known are {', '.join(PayloadType)}")
        if kind not in _UNCHECKED and all(payload.kind is not kind for payload in self.found[since:]):
            for part in parts:
                self._add(kind, _as_declared(kind, part))

    def _texted(self, part: TextPart) -> None:
        language = language_of(part.name, part.media_type)
        if language is None:
            self._leave(part.text, self.text(part.text, 0))
        else:
            self._program(part.text, language, 0)

    def _leave(self, text: str, left: str | None) -> None:
        self.texts.append(text if left is None else left)

    def _valued(self, value: Any) -> None:
        before = self.met
        self.value(value, 0, 0)
        if self.met == before:
            self.values.append(value)

    def _filed(self, part: FilePart) -> None:
        held = files.from_address(part.url) if part.url else None
        content, media_type = part.content, part.media_type
        if content is None and not part.url:
            content = b""
        if held is not None:
            content, media_type = held.content, media_type or held.media_type
        before = self.met
        names = (part.name, _last(part.url) if held is None else "")
        self._file(content, next(filter(language_of_name, names), part.name or names[1]), media_type)
        if self.met == before:
            url = part.url if held is None else ""
            self.files.append(files.described(content, url, part.name, media_type))

    def _file(self, content: bytes | None, name: str, media_type: str, inside: int = 0) -> None:
        language = language_of(name, media_type)
        if language == BINARY or (content is not None and is_binary(content)):
            raise Over(f"`{name[:40]}` is a program that cannot be read, send its source")
        if content is None:
            if language is not None:
                raise Over(f"code behind an address cannot be read, send `{name[:40]}` in the message")
            return
        text = files.text_of(content, media_type, name) if language is None else files.text_of(content, media_type)
        if text is not None:
            (self.text(text, inside) if language is None else self._program(text, language, inside))
        elif language is not None:
            raise Over(f"`{name[:40]}` is said to be code and is no text, send it as UTF-8")

    def text(self, text: str, inside: int) -> str | None:
        """What is left of a text when its payloads are taken out; None where it holds none."""
        require_inside(inside)
        self.budget.take("characters", len(text))
        plain = _LINE_END.sub("\n", text.lstrip("\ufeff"))
        before = self.met
        left = self._as_a_whole(plain, inside)
        if left is None:
            left = "\n".join(self._piece(piece, inside) for piece in pieces(plain, self.budget))
        return left if self.met > before else None

    def _as_a_whole(self, text: str, inside: int) -> str | None:
        """What is left of a text that is one thing: JSON, a script, a program."""
        bare = text.strip()
        value = json_text.whole(bare)
        if value is not None:
            self.value(value[0], 0, inside)
            return ""
        language = script_language(bare)
        if language is not None:
            self._program(bare, language, inside)
            return ""
        return None

    def _piece(self, piece: str | Fence, inside: int) -> str:
        return self._fence(piece, inside) if isinstance(piece, Fence) else self._prose(piece, inside)

    def _fence(self, fence: Fence, inside: int) -> str:
        language = language_named(fence.word)
        if language is not None:
            self._program(fence.body, language, inside)
            return ""
        before = self.met
        left = self.text(fence.body, inside + 1)
        commands = sniffing.commands_in(fence.body) if self.met == before else None
        if commands is not None:
            self._program(fence.body, commands, inside)
            return ""
        if self.met == before and sniffing.is_fenced_program(fence.body, self.budget):
            self._add(PayloadType.CODE_EXECUTION, {"code": fence.body})
            return ""
        return fence.written if left is None else left

    def _prose(self, prose: str, inside: int) -> str:
        kept, at = [], 0
        for found in json_text.inside(prose, self.budget):
            before = self.met
            self.value(found.value, 0, inside)
            if self.met > before:
                kept.append(prose[at : found.start])
                at = found.end
        left = "".join((*kept, prose[at:]))
        json_text.require_readable(left)
        for element in elements(left, self.budget):
            self._fence(element, inside)
        self._addresses(left, inside)
        program = sniffing.program_in(left, self.budget)
        if program is None:
            return left
        self._add(PayloadType.CODE_EXECUTION, {"code": program})
        return "" if program == left else left

    def _addresses(self, prose: str, inside: int) -> None:
        for match in files.DATA_URL.finditer(prose) if "data:" in prose.lower() else ():
            self.budget.take("fences")
            held = files.held_in(match)
            if held is not None:
                self._file(held.content, "", held.media_type, inside + 1)

    def _program(self, text: str, language: str, inside: int) -> None:
        """A text that is said to be code."""
        self.budget.take("characters", len(text))
        if language == NOTEBOOK:
            self._notebook(text, inside)
        elif language == "console":
            self._add(PayloadType.CODE_EXECUTION, {"code": _typed(text), "language": "bash"})
        elif language == PROMPT:
            code = "\n".join(_PROMPTED.findall(text)) or text
            self._add(PayloadType.CODE_EXECUTION, {"code": code, "language": "python"})
        elif text.strip():
            code = text.lstrip("\ufeff")
            self._add(PayloadType.CODE_EXECUTION, {"code": code, "language": language})

    def _notebook(self, text: str, inside: int) -> None:
        value = json_text.whole(text.lstrip("\ufeff").strip())
        if value is None or files.notebook_code(value[0]) is None:
            raise Over("a notebook cannot be read, send it as JSON with its `cells`")
        self.value(value[0], 0, inside)

    def value(self, value: Any, depth: int, inside: int) -> None:
        """The payloads that a JSON value is or holds."""
        require_depth(depth)
        self.budget.take("values")
        if isinstance(value, str):
            if _HOLDING.search(value) or (_CALLING.search(value) and sniffing.may_do_something(value)):
                self.text(value, inside + 1)
        elif isinstance(value, Mapping):
            self._object(value, depth, inside)
        elif isinstance(value, list | tuple):
            for each in value:
                self.value(each, depth + 1, inside)

    def _object(self, value: Mapping[str, Any], depth: int, inside: int) -> None:
        program = files.notebook_code(value)
        if program:
            self._add(PayloadType.CODE_EXECUTION, program)
        members = objects.members_of(value)
        own = objects.payloads_of(value, members)
        for payload in own:
            self._add(*payload)
        self._sent_as_data(members, inside)
        taken = {"code"} if any(payload.kind is PayloadType.CODE_EXECUTION for payload in own) else set()
        for name, member in value.items():
            if len(name) > _LONG_NAME:
                self.value(name, depth + 1, inside)
            if objects.folded(name) not in taken and not (program and name == "cells"):
                self.value(member, depth + 1, inside)

    def _sent_as_data(self, members: Mapping[str, Any], inside: int) -> None:
        """A file or a program as an object: its content in one member, what it is in another."""
        sent = objects.sent(members)
        told = sent.language or language_of(sent.name, sent.media_type)
        for body in sent.bodies:
            language = told or (sniffing.commands_in(body) if body in sent.commands else None)
            if language is not None:
                self._program(body, language, inside)
        if sent.packed is not None:
            self._file(sent.packed, sent.name, sent.media_type, inside + 1)

    def _add(self, kind: PayloadType, payload: dict[str, Any]) -> None:
        self.met += 1
        if (kind, payload) not in self.found:
            self.budget.take("payloads")
            self.found.append(Payload(kind, payload))


_KINDS = {kind.value: kind for kind in PayloadType}
_UNCHECKED = frozenset({PayloadType.GENERAL})
_LINE_END = re.compile(r"\r\n|[\r\v\x1c-\x1e\x85\u2028\u2029]")
"""Whatever ends a line for some reader; a form feed is a blank to Python."""
_LONG_NAME = 16
"""A name that is longer may hold something itself."""
_PROMPTED = re.compile(r"(?m)^[ \t]*(?:>>>|\.\.\.) (.*)$")
_HOLDING = re.compile(r"[{]|```|~~~|data:|#!", re.IGNORECASE)
_CALLING = re.compile(r"[(\[]|import")
"""What a text has that is more than a word or a sentence, and what a program has."""


def _last(url: str) -> str:
    """The last name of an address; a host is none."""
    _, scheme, rest = url.rpartition("://")
    path = rest.partition("/")[2] if scheme else rest
    return path.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2]


def _typed(text: str) -> str:
    """What was typed in a transcript of a terminal: its lines after a prompt, all of them where there is none."""
    lines = [line.strip() for line in text.split("\n")]
    typed = [line[2:] for line in lines if line[:2] in ("$ ", "# ", "% ")]
    return "\n".join(typed or lines)


def _as_declared(kind: PayloadType, part: Part) -> dict[str, Any]:
    value = part.value if isinstance(part, DataPart) else _content(part)
    if isinstance(value, str):
        parsed = None if kind is PayloadType.CODE_EXECUTION else json_text.whole(value.strip())
        value = value if parsed is None else parsed[0]
    if isinstance(value, Mapping):
        return dict(value)
    return {_MEMBER.get(kind, "text"): value}


_MEMBER = {
    PayloadType.CODE_EXECUTION: "code",
    PayloadType.LOGIC_ASSERTION: "assertions",
    PayloadType.FINANCIAL_TRANSACTION: "data",
}


def _content(part: TextPart | FilePart) -> str:
    if isinstance(part, TextPart):
        return part.text
    return files.text_of(part.content or b"", part.media_type) or ""
