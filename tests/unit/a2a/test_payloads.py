"""What real A2A messages hold: read as payloads however it is written, bounded, and refused where it cannot be read."""

import base64
import json
from typing import Any

import pytest

from qwed.guards.python_code import findings
from qwed.words import EffectKind
from qwed.words.canonical import canonical
from qwed_a2a.message import AgentMessage, PayloadType
from qwed_a2a.payloads import Contents, DataPart, FilePart, Part, TextPart, Unread, read_parts
from qwed_a2a.payloads.budget import MAX_DEPTH, MAX_FENCES, MAX_INSIDE, MAX_OBJECTS, MAX_PARTS, MAX_PAYLOADS
from qwed_a2a.payloads.sniffing import LONGEST, may_do_something
from tests.support.tables import each, rows

INVOICE = {"claimed_total": "30.00", "line_items": [{"amount": "10.00", "quantity": 3}]}


def part(row: dict[str, Any]) -> Part:
    more = {member: row[member] for member in ("name", "media_type", "metadata") if member in row}
    if "text" in row:
        return TextPart(row["text"], **more)
    if "data" in row:
        return DataPart(row["data"], **more)
    return FilePart(base64.b64decode(row["raw"]) if "raw" in row else None, row.get("url", ""), **more)


def read(row: dict[str, Any]) -> Contents | Unread:
    return read_parts([part(each) for each in row["parts"]], row.get("metadata", {}))


def contents(*parts: Part) -> Contents:
    found = read_parts(parts)
    assert isinstance(found, Contents), found
    return found


def reason(*parts: Part) -> str:
    found = read_parts(parts)
    assert isinstance(found, Unread), found
    assert found.reason.isprintable()
    return found.reason


def name(row: dict[str, Any]) -> str:
    return str(row["name"])


@each("row", rows("a2a_payloads_found.jsonl"), ids=name)
def test_what_a_message_holds_is_found_in_its_order(row):
    found = read(row)
    assert isinstance(found, Contents), found
    assert [str(payload.kind) for payload in found.payloads] == [each["kind"] for each in row["found"]], found
    for payload, wanted in zip(found.payloads, row["found"], strict=True):
        assert payload.payload == wanted.get("payload", payload.payload)


@each("row", rows("a2a_payloads_honest.jsonl"), ids=name)
def test_what_holds_no_payload_is_general(row):
    found = read(row)
    assert isinstance(found, Contents), found
    assert [payload.kind for payload in found.payloads] == [PayloadType.GENERAL], found


@each("row", rows("a2a_payloads_refused.jsonl"), ids=name)
def test_what_cannot_be_read_whole_is_refused_with_what_to_change(row):
    found = read(row)
    assert isinstance(found, Unread), found
    assert row["says"] in found.reason
    assert found.reason.isprintable()


@each("row", rows("a2a_payloads_found.jsonl") + rows("a2a_payloads_honest.jsonl"), ids=name)
def test_every_payload_is_one_of_a_message_and_the_same_each_time(row):
    found = read(row)
    assert isinstance(found, Contents)
    assert found == read(row)
    for kind, payload in found.payloads:
        message = AgentMessage(sender_agent_id="a", receiver_agent_id="b", payload_type=kind, payload=payload)
        assert canonical(message.payload)


def test_a_file_that_is_not_opened_is_told_of_by_its_name_and_digest():
    [payload] = contents(FilePart(b"\x00\xff", name="a.bin", media_type="application/octet-stream")).payloads
    digest = "06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8"
    told = {"name": "a.bin", "media_type": "application/octet-stream", "bytes": 2, "sha256": digest}
    assert payload.payload == {"files": [told]}


def test_the_text_that_is_left_is_given_apart():
    found = contents(TextPart("before\n```py\nx = 1\n```\nafter"), DataPart(INVOICE), TextPart("more"))
    assert found.text.split() == ["before", "after", "more"]


def test_a_payload_that_stands_in_several_places_is_given_once():
    assert len(contents(DataPart([INVOICE, INVOICE]), TextPart(json.dumps(INVOICE))).payloads) == 1


def test_more_parts_than_are_read_are_refused():
    assert contents(*[TextPart("x")] * MAX_PARTS)
    assert "parts" in reason(*[TextPart("x")] * (MAX_PARTS + 1))


def test_values_in_one_another_are_read_to_a_depth():
    def nested(levels: int) -> Any:
        value: Any = INVOICE
        for _ in range(levels):
            value = [value]
        return value

    assert contents(DataPart(nested(MAX_DEPTH - 3))).payloads[0].kind is PayloadType.FINANCIAL_TRANSACTION
    assert "nested deeper" in reason(DataPart(nested(MAX_DEPTH)))
    assert "nested deeper" in reason(TextPart(json.dumps(nested(MAX_DEPTH))))


def test_texts_in_one_another_are_read_to_a_depth():
    def nested(levels: int) -> str:
        text = json.dumps(INVOICE)
        for _ in range(levels):
            text = json.dumps({"a": text})
        return text

    assert contents(TextPart(nested(MAX_INSIDE - 1))).payloads[0].kind is PayloadType.FINANCIAL_TRANSACTION
    assert "inside one another" in reason(TextPart(nested(MAX_INSIDE + 1)))


HOSTILE = {
    "fences": ("```\nx\n```\n" * 10_000, "fenced blocks"),
    "fences that never close": ("~~~python\n```js\n" * 10_000, ""),
    "brackets": ("[" * 100_000, "nested too deep"),
    "objects that never end": ('{"a":' * 50_000, "nested too deep"),
    "objects in prose": ("x " + '{"a":1} ' * (MAX_OBJECTS + 1), "objects in its prose"),
    "half objects in prose": ("x " + '{"a": "' * (MAX_OBJECTS + 1), "objects in its prose"),
    "long half objects": ("x " + ('{"a":[' + "1," * 3_000) * 200, "do not end"),
    "parentheses": ("(" * 200_000, ""),
    "one long line": ("a." * 100_000 + "a()", ""),
    "imports": ("import a\n)\n" * 20_000, ""),
    "paragraphs": ("f(x) is\n\n" * 20_000, ""),
    "spans": ("```a``` " * 5_000, "fenced blocks"),
    "a number of many digits": ('{"claimed_total": ' + "9" * 100_000 + "}", "digits"),
    "an exponent without bound": ('{"claimed_total": 1e' + "9" * 50 + "}", ""),
    "members": ("{" + ",".join(f'"k{n}":1' for n in range(50_000)) + ',"k49999":2}', "stands twice"),
    "quotations": (">" * 50_000 + "```python\nx\n", ""),
    "lines quoted very often": (">" * 3_000 + "```python\n" + (">" * 3_000 + "x\n") * 300, ""),
    "spans of every length": ("".join("`" * length + "a" for length in range(1_300, 3, -1)), "fenced blocks"),
    "fields in texts": ("open(f'" + "{x}" * 30_000 + "')", ""),
    "paragraphs of fields": (("open(f'" + "{x}" * 500 + "')\n\n") * 20, "may be programs"),
    "escapes": ('"' + "\\" * 99_999, ""),
    "addresses": ("data:,x " * 5_000, "fenced blocks"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_text_made_to_be_ruinous_is_read_or_refused_soon(kind):
    text, says = HOSTILE[kind]
    found = read_parts([TextPart(text)])
    assert isinstance(found, Unread) == bool(says), found
    assert not isinstance(found, Unread) or says in found.reason


@each("code", [row["code"] for name in ("python_attacks", "python_deeds") for row in rows(f"{name}.jsonl")])
def test_a_program_without_a_telling_word_does_nothing_that_is_known(code):
    if may_do_something(code):
        return
    found = findings(code)
    # An encoding is asked for of a file; a message is text already.
    assert not [each for each in found.violations if "source encoding" not in each]
    assert {effect.kind for effect in found.effects} <= {EffectKind.UNRESOLVED}


@pytest.mark.parametrize("text", ["f(1)\n" * 100, "import os\n", "open('a')\n" * 100])
def test_very_many_blocks_that_may_be_programs_are_refused_or_read_soon(text):
    found = read_parts([TextPart(f"```\n{text}```\n" * 490)])
    assert isinstance(found, Unread) == (len(text) > 20)


def test_very_many_values_and_payloads_are_refused():
    assert "values" in reason(DataPart([0] * 200_000))
    assert "payloads" in reason(DataPart([{"claimed_total": n} for n in range(MAX_PAYLOADS + 1)]))
    assert "fenced blocks" in reason(DataPart(["```\nx\n```"] * (MAX_FENCES + 1)))


def test_a_long_text_with_an_import_is_a_program_and_a_guard_decides():
    long = "print(1)\n" * (LONGEST // 9 + 1)
    assert contents(TextPart(f"import os\n{long}")).payloads[0].kind is PayloadType.CODE_EXECUTION
    assert contents(TextPart("a sentence of prose. " * LONGEST)).payloads[0].kind is PayloadType.GENERAL


UNDECLARED = [row for row in rows("a2a_payloads_found.jsonl") if "metadata" not in row][::7]


@each(("kind", "row"), [(kind, row) for kind in PayloadType for row in UNDECLARED])
def test_a_declaration_takes_no_check_away(kind, row):
    alone = read(row)
    declared = read({**row, "metadata": {"payload_type": kind.value}})
    assert isinstance(alone, Contents)
    assert isinstance(declared, Contents)
    assert all(payload in declared.payloads for payload in alone.payloads)
