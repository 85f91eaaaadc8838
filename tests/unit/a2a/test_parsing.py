"""Parser for real A2A messages: payloads in any notation, bounded, and refused if unreadable."""

import base64
import json
from typing import Any

import pytest

from qwed.guards.python_code import findings
from qwed.model import EffectKind
from qwed.model.canonical import canonical
from qwed_a2a.message import AgentMessage, PayloadType
from qwed_a2a.parsing import Contents, DataPart, FilePart, Part, TextPart, UnparsableMessage, read_parts
from qwed_a2a.parsing.code_detection import MAX_PARSED_LENGTH, has_effect_words
from qwed_a2a.parsing.parse_limits import MAX_DEPTH, MAX_FENCES, MAX_OBJECTS, MAX_PARTS, MAX_PAYLOADS, MAX_TEXT_NESTING
from tests.support.case_tables import each, rows

INVOICE = {"claimed_total": "30.00", "line_items": [{"amount": "10.00", "quantity": 3}]}


def part(row: dict[str, Any]) -> Part:
    more = {member: row[member] for member in ("name", "media_type", "metadata") if member in row}
    if "text" in row:
        return TextPart(row["text"], **more)
    if "data" in row:
        return DataPart(row["data"], **more)
    return FilePart(base64.b64decode(row["raw"]) if "raw" in row else None, row.get("url", ""), **more)


def read(row: dict[str, Any]) -> Contents | UnparsableMessage:
    return read_parts([part(item) for item in row["parts"]], row.get("metadata", {}))


def contents(*parts: Part) -> Contents:
    result = read_parts(parts)
    assert isinstance(result, Contents), result
    return result


def reason(*parts: Part) -> str:
    result = read_parts(parts)
    assert isinstance(result, UnparsableMessage), result
    assert result.reason.isprintable()
    return result.reason


def name(row: dict[str, Any]) -> str:
    return str(row["name"])


@each("row", rows("a2a_payloads_found.jsonl"), ids=name)
def test_what_a_message_holds_is_found_in_its_order(row):
    result = read(row)
    assert isinstance(result, Contents), result
    assert [str(payload.kind) for payload in result.payloads] == [expected["kind"] for expected in row["found"]], result
    for payload, wanted in zip(result.payloads, row["found"], strict=True):
        assert payload.payload == wanted.get("payload", payload.payload)


@each("row", rows("a2a_payloads_honest.jsonl"), ids=name)
def test_what_holds_no_payload_is_general(row):
    result = read(row)
    assert isinstance(result, Contents), result
    assert [payload.kind for payload in result.payloads] == [PayloadType.GENERAL], result


@each("row", rows("a2a_payloads_refused.jsonl"), ids=name)
def test_what_cannot_be_read_whole_is_refused_with_what_to_change(row):
    result = read(row)
    assert isinstance(result, UnparsableMessage), result
    assert row["says"] in result.reason
    assert result.reason.isprintable()


@each("row", rows("a2a_payloads_found.jsonl") + rows("a2a_payloads_honest.jsonl"), ids=name)
def test_every_payload_is_one_of_a_message_and_the_same_each_time(row):
    result = read(row)
    assert isinstance(result, Contents)
    assert result == read(row)
    for kind, payload in result.payloads:
        message = AgentMessage(sender_agent_id="a", receiver_agent_id="b", payload_type=kind, payload=payload)
        assert canonical(message.payload)


def test_a_file_that_is_not_opened_is_told_of_by_its_name_and_digest():
    [payload] = contents(FilePart(b"\x00\xff", name="a.bin", media_type="application/octet-stream")).payloads
    digest = "06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8"
    summary = {"name": "a.bin", "media_type": "application/octet-stream", "bytes": 2, "sha256": digest}
    assert payload.payload == {"files": [summary]}


def test_the_text_that_is_left_is_given_apart():
    result = contents(TextPart("before\n```py\nx = 1\n```\nafter"), DataPart(INVOICE), TextPart("more"))
    assert result.text.split() == ["before", "after", "more"]


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

    assert contents(TextPart(nested(MAX_TEXT_NESTING - 1))).payloads[0].kind is PayloadType.FINANCIAL_TRANSACTION
    assert "texts are nested deeper" in reason(TextPart(nested(MAX_TEXT_NESTING + 1)))


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
    "members": ("{" + ",".join(f'"k{n}":1' for n in range(50_000)) + ',"k49999":2}', "appears twice"),
    "quotations": (">" * 50_000 + "```python\nx\n", ""),
    "lines quoted very often": (">" * 3_000 + "```python\n" + (">" * 3_000 + "x\n") * 300, ""),
    "spans of every length": ("".join("`" * length + "a" for length in range(1_300, 3, -1)), "fenced blocks"),
    "fields in texts": ("open(f'" + "{x}" * 30_000 + "')", ""),
    "paragraphs of fields": (("open(f'" + "{x}" * 500 + "')\n\n") * 20, "possible programs"),
    "escapes": ('"' + "\\" * 99_999, ""),
    "addresses": ("data:,x " * 5_000, "fenced blocks"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_text_made_to_be_ruinous_is_read_or_refused_soon(kind):
    text, says = HOSTILE[kind]
    result = read_parts([TextPart(text)])
    assert isinstance(result, UnparsableMessage) == bool(says), result
    assert not isinstance(result, UnparsableMessage) or says in result.reason


@each("code", [row["code"] for name in ("python_attacks", "python_effects") for row in rows(f"{name}.jsonl")])
def test_a_program_without_a_telling_word_does_nothing_that_is_known(code):
    if has_effect_words(code):
        return
    result = findings(code)
    # Source encodings apply to files; a message is text already.
    assert not [violation for violation in result.violations if "source encoding" not in violation]
    assert {effect.kind for effect in result.effects} <= {EffectKind.UNRESOLVED}


@pytest.mark.parametrize("text", ["f(1)\n" * 100, "import os\n", "open('a')\n" * 100])
def test_very_many_blocks_that_may_be_programs_are_refused_or_read_soon(text):
    result = read_parts([TextPart(f"```\n{text}```\n" * 490)])
    assert isinstance(result, UnparsableMessage) == (len(text) > 20)


def test_very_many_values_and_payloads_are_refused():
    assert "values" in reason(DataPart([0] * 200_000))
    assert "payloads" in reason(DataPart([{"claimed_total": n} for n in range(MAX_PAYLOADS + 1)]))
    assert "fenced blocks" in reason(DataPart(["```\nx\n```"] * (MAX_FENCES + 1)))


def test_a_long_text_with_an_import_is_a_program_and_a_guard_decides():
    long = "print(1)\n" * (MAX_PARSED_LENGTH // 9 + 1)
    assert contents(TextPart(f"import os\n{long}")).payloads[0].kind is PayloadType.CODE_EXECUTION
    assert contents(TextPart("a sentence of prose. " * MAX_PARSED_LENGTH)).payloads[0].kind is PayloadType.GENERAL


UNDECLARED = [row for row in rows("a2a_payloads_found.jsonl") if "metadata" not in row][::7]


@each(("kind", "row"), [(kind, row) for kind in PayloadType for row in UNDECLARED])
def test_a_declaration_takes_no_check_away(kind, row):
    alone = read(row)
    declared = read({**row, "metadata": {"payload_type": kind.value}})
    assert isinstance(alone, Contents)
    assert isinstance(declared, Contents)
    assert all(payload in declared.payloads for payload in alone.payloads)
