"""ISOGuard on sample messages: valid ones hold as XML and as JSON, and each rule rejects its violation."""

import json
import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from qwed.packs.result import CheckStatus
from qwed_finance import ISOGuard
from qwed_finance._iso.rules import RULES
from qwed_finance._iso.schema import ComplexType, ValueWithAttributes, message_definitions, type_of
from qwed_finance.iso import ISOResult
from tests.support.case_tables import DATA, each, rows

SAMPLES = sorted(path.name for path in (DATA / "iso20022").glob("*.xml"))
FAMILIES = ("camt.053", "camt.054", "pacs.002", "pacs.004", "pacs.008", "pain.001", "pain.002", "pain.008")


def text_of(name: str) -> str:
    return (DATA / "iso20022" / name).read_text()


def verify(message: Any, msg_type: Any = "pacs.008") -> ISOResult:
    return ISOGuard().verify_payment_message(message, msg_type)


def tree_of(element: ElementTree.Element) -> Any:
    """Convert to JSON as common converters do: `@Ccy` and `#text`, lists for repeated elements."""
    if element.attrib:
        return {f"@{name}": value for name, value in element.attrib.items()} | {"#text": element.text}
    if not len(element):
        return element.text
    members: dict[str, Any] = {}
    for child in element:
        name = child.tag.partition("}")[2]
        if name in members:
            before = members[name] if isinstance(members[name], list) else [members[name]]
            members[name] = [*before, tree_of(child)]
        else:
            members[name] = tree_of(child)
    return members


def test_every_family_has_samples_of_several_versions() -> None:
    by_family = {family: {name[:15] for name in SAMPLES if name.startswith(family)} for family in FAMILIES}
    assert all(len(versions) >= 2 for versions in by_family.values()), by_family


@each("name", SAMPLES)
def test_a_right_message_holds_as_xml(name: str) -> None:
    for message in (text_of(name), text_of(name).encode(), b"\xef\xbb\xbf" + text_of(name).encode()):
        for msg_type in (name[:8], name[:15]):
            result = verify(message, msg_type)
            assert result.verified, result.issues
            assert (result.msg_type, result.issues, result.warnings) == (name[:15], (), ())
            assert result.rule
            assert result.by_hand


@each("name", SAMPLES)
def test_and_as_json(name: str) -> None:
    inner = tree_of(ElementTree.fromstring(text_of(name)))
    (root,) = inner
    namespace = f"urn:iso:std:iso:20022:tech:xsd:{name[:15]}"
    for message in (
        {"Document": inner},
        {"Document": {"@xmlns": namespace, **inner}},
        inner,
        inner[root],
        json.dumps(inner),
        {root: dict(reversed(inner[root].items()))},
    ):
        assert verify(message, name[:15]).verified, verify(message, name[:15]).issues
        assert verify(message, name[:8]).verified, verify(message, name[:8]).issues


@each("row", rows("iso_false.jsonl") + rows("iso_hostile.jsonl"))
def test_what_breaks_a_rule_is_refused_by_it(row: dict[str, str]) -> None:
    before = text_of(row["file"])
    message = (
        before.replace(row["old"], row["new"]) if row["old"] == "\n" else before.replace(row["old"], row["new"], 1)
    )
    assert message != before
    result = verify(message, row["file"][:8])
    assert result.status is CheckStatus(row["status"]), result.issues
    if row["rule"]:
        assert row["rule"] in {issue.rule for issue in result.issues}, result.issues
    if row["status"] != "UNVERIFIABLE":
        assert result.rule
        assert result.by_hand
    assert all(issue.path.startswith("/") and issue.by_hand and issue.rule in RULES for issue in result.issues)


def test_every_rule_is_broken_by_a_row() -> None:
    broken = {row["rule"] for row in rows("iso_false.jsonl") + rows("iso_hostile.jsonl")}
    assert set(RULES) - broken == {"levels", "schema"}, "a warning, and the schema files of the caller"


_CHECKED = "IBAN|NbOfTxs|CtrlSum|TtlIntrBkSttlmAmt|TtlRtrdIntrBkSttlmAmt|InstdAmt|RtrdIntrBkSttlmAmt|NbOfNtries|Sum"
_EXEMPT = ("pain.002", "pacs.002")


def mutate_digits(text: str) -> Iterator[str]:
    """Yield the text with one digit of a checked number changed, or two adjacent digits swapped."""
    for match in re.finditer(rf"<(?:{_CHECKED})(?: [^>]*)?>([^<]+)<", text):
        start, value = match.start(1), match[1]
        for at, sign in enumerate(value):
            if not sign.isdigit():
                continue
            other = str((int(sign) + 3) % 10)
            yield text[: start + at] + other + text[start + at + 1 :]
            after = value[at + 1 : at + 2]
            if after.isdigit() and after != sign:
                yield text[: start + at] + after + sign + text[start + at + 2 :]


@each("name", [name for name in SAMPLES if not name.startswith(_EXEMPT) and "crossborder" not in name], at_once=4)
def test_every_slip_of_a_digit_in_a_checked_number_is_refused(name: str) -> None:
    for wrong in mutate_digits(text_of(name)):
        assert not verify(wrong, name[:8]).verified


@each("name", [name for name in SAMPLES if name.startswith("camt.053")])
def test_every_slip_in_an_entry_or_a_booked_balance_is_refused(name: str) -> None:
    # An available balance and a pending entry follow, which no rule covers.
    text = re.split('<Cd>CLAV</Cd>|(?<=JPY">)700', text_of(name))[0]
    rest = text_of(name)[len(text) :]
    for match in re.finditer(r'<Amt Ccy="...">([0-9.]+)<', text):
        for at, sign in enumerate(match[1]):
            if sign.isdigit():
                offset = match.start(1) + at
                wrong = text[:offset] + str((int(sign) + 1) % 10) + text[offset + 1 :] + rest
                assert not verify(wrong, "camt.053").verified, wrong


def test_all_that_is_wrong_is_told_with_its_place() -> None:
    wrong = text_of("pain.001.001.03-sepa.xml").replace("NL91", "NL92").replace("ABNANL2A", "ABNAZZ2A")
    wrong = wrong.replace("<CtrlSum>500<", "<CtrlSum>501<").replace("<NbOfTxs>3<", "<NbOfTxs>4<")
    result = verify(wrong, "pain.001")
    top = "/Document/CstmrCdtTrfInitn"
    assert {(issue.rule, issue.path) for issue in result.issues} == {
        ("iban", f"{top}/PmtInf[1]/CdtTrfTxInf[1]/CdtrAcct/Id/IBAN"),
        ("bic", f"{top}/PmtInf[1]/CdtTrfTxInf[1]/CdtrAgt/FinInstnId/BIC"),
        ("count", f"{top}/GrpHdr/NbOfTxs"),
        ("control_sum", f"{top}/PmtInf[2]/CtrlSum"),
    }
    (control,) = (issue for issue in result.issues if issue.rule == "control_sum")
    assert "500.00 = 500.00" in control.by_hand[0]


def test_a_thousand_payments_are_added_up() -> None:
    before, one, after = re.split(
        r"(<CdtTrfTxInf>.*?</CdtTrfTxInf>)", text_of("pain.001.001.13-one.xml"), flags=re.DOTALL
    )
    many = "".join(
        one.replace("ONE-1", f"ONE-{at}").replace(">0.01<", f">{at}.{at % 100:02d}<") for at in range(1, 1001)
    )
    cents = sum(at * 100 + at % 100 for at in range(1, 1001))
    whole = f"{cents // 100}.{cents % 100:02d}"
    right = (
        (before + many + after).replace("<NbOfTxs>1<", "<NbOfTxs>1000<").replace("<CtrlSum>0.01<", f"<CtrlSum>{whole}<")
    )
    assert verify(right, "pain.001").verified
    for wrong in ("999", "1001", "100"):
        assert not verify(right.replace("<NbOfTxs>1000<", f"<NbOfTxs>{wrong}<"), "pain.001").verified
    assert not verify(right.replace(whole, f"{cents // 100}.{(cents + 1) % 100:02d}"), "pain.001").verified
    every = verify(right.replace("BE68", "BE69"), "pain.001")
    assert len(every.issues) == 200
    assert "at least" in every.message


@each(
    "amount",
    [
        {"@Ccy": "EUR", "#text": "12.50"},
        {"Ccy": "EUR", "value": 12.5},
        {"Ccy": "EUR", "value": Decimal("12.50")},
        {"currency": "EUR", "amount": "12.50"},
        {"Ccy": "EUR", "Amt": 12.50},
        {"$": "12.50", "@Ccy": "EUR"},
        {"Ccy": "EUR", "ActiveCurrencyAndAmount": "12.50"},
    ],
)
def test_amounts_in_json_are_written_in_the_usual_ways(amount: Any) -> None:
    content = payment(amount)
    assert verify(content).verified, verify(content).issues
    content["GrpHdr"]["TtlIntrBkSttlmAmt"] = {"@Ccy": "EUR", "#text": "12.51"}
    assert not verify(content).verified


@each(
    "amount",
    [
        "12.50",
        12.5,
        None,
        {"Ccy": "EUR"},
        {"value": "12.50"},
        {"Ccy": "EUR", "value": True},
        {"Ccy": "EUR", "value": "12,50"},
        {"Ccy": "EUR", "value": 0.1 + 0.2},
        {"Ccy": "EUR", "value": float("nan")},
        {"Ccy": "EUR", "value": 10**40},
        {"Ccy": "EUR", "value": "12.50", "amount": "13.50"},
        {"Ccy": "EUR", "currency": "USD", "value": "12.50"},
        {"Ccy": "EUR", "value": ["12.50"]},
        [{"Ccy": "EUR", "value": "12.50"}, {"Ccy": "EUR", "value": "12.50"}],
        {"Ccy": "JPY", "value": 12.5},
        {"Ccy": "EUR", "value": -12.5},
        {"Ccy": "EUR", "value": 0},
    ],
)
def test_and_not_in_others(amount: Any) -> None:
    assert not verify(payment(amount)).verified


def payment(amount: Any) -> dict[str, Any]:
    """Return the smallest interbank payment, as a caller would write it."""
    return {
        "GrpHdr": {"MsgId": "M", "CreDtTm": "2026-01-15T10:00:00", "NbOfTxs": 1, "SttlmInf": {"SttlmMtd": "CLRG"}},
        "CdtTrfTxInf": [
            {
                "PmtId": {"EndToEndId": "E"},
                "IntrBkSttlmAmt": amount,
                "ChrgBr": "SLEV",
                "Dbtr": {"Nm": "A"},
                "DbtrAcct": {"Id": {"IBAN": "DE89370400440532013000"}},
                "DbtrAgt": {"FinInstnId": {"BICFI": "COBADEFF"}},
                "CdtrAgt": {"FinInstnId": {"BICFI": "ABNANL2A"}},
                "Cdtr": {"Nm": "B"},
            }
        ],
    }


def test_objects_that_stand_in_one_another_twice_are_not_followed_for_ever() -> None:
    content: dict[str, Any] = {}
    for _ in range(60):
        content = {"MsgId": content, "CreDtTm": content}
    for message in (content, {"GrpHdr": content}, {"GrpHdr": {"MsgId": [content] * 5}}):
        assert verify(message).status is CheckStatus.UNVERIFIABLE


def cyclic() -> dict[str, Any]:
    content: dict[str, Any] = {}
    content["GrpHdr"] = content
    return content


@each(
    "content",
    [
        None, True, 1, 1.5, "", " ", "x", "{", "[]", "null", b"", b"\x00", b"\xff\xfe<\x00", [], {}, set(), object(),
        {"a": 1}, {1: 2}, {None: None}, {"Document": 1}, {"Document": None}, {"Document": {}}, {"GrpHdr": None},
        {"GrpHdr": [[1]]}, {"GrpHdr": {"MsgId": object()}}, {"GrpHdr": {"MsgId": b"M"}}, {"CdtTrfTxInf": []}, cyclic(),
        {"msg_id": "M", "amount": 1, "currency": "EUR"}, '{"GrpHdr": 1, "GrpHdr": 1}', '{"GrpHdr": NaN}',
        '{"GrpHdr":' * 100_000, "<" * 100_000, "<a>" * 100_000, "<a/>" * 10, {"GrpHdr": "\ud800"}, "<a>\ud800</a>",
        {"GrpHdr": {"MsgId": "M" * 10**6}}, {"x" * 10**6: 1}, "<" + "a" * 10**6 + "/>", {"CdtTrfTxInf": [{}] * 160_000},
        {"GrpHdr": dict.fromkeys(map(str, range(10_000)), 1)},
    ],
)  # fmt: skip
def test_what_is_no_message_is_never_verified_and_never_raises(content: Any) -> None:
    for msg_type in ("pacs.008", "camt.053.001.08"):
        result = verify(content, msg_type)
        assert not result.verified
        assert result.message


@each("msg_type", ["pacs.009", "pacs", "", True, 8, "pacs.008.001", "pacs.008.001.99", "pain.001.001.02", "a" * 10**6])
def test_an_unknown_type_or_version_hears_which_are_known(msg_type: Any) -> None:
    result = verify(text_of("pacs.008.001.08-sepa.xml"), msg_type)
    assert result.status is CheckStatus.UNVERIFIABLE
    if isinstance(msg_type, str):
        assert set(result.known) == set(FAMILIES) or all(version.startswith(msg_type[:8]) for version in result.known)


def test_a_message_is_what_it_is_called() -> None:
    for name in SAMPLES:
        for family in FAMILIES:
            if not name.startswith(family):
                assert verify(text_of(name), family).status is CheckStatus.FAILED
    assert verify(text_of("pacs.008.001.08-sepa.xml"), "pacs.008.001.10").status is CheckStatus.FAILED
    assert verify(text_of("pacs.008.001.08-sepa.xml"), "PACS_008").verified


def test_a_message_without_a_requested_type_is_judged_by_its_namespace() -> None:
    guard = ISOGuard()
    for name in SAMPLES:
        result = guard.verify_payment_message(text_of(name))
        assert result.verified, (name, result.message)
        assert result.msg_type == name[:15]
        assert result.msg_type in result.message
    unknown = guard.verify_payment_message(text_of(SAMPLES[0]).replace(SAMPLES[0][:15], "pacs.009.001.08"))
    assert unknown.status is CheckStatus.UNVERIFIABLE
    assert set(unknown.known) == set(FAMILIES)
    assert guard.verify_payment_message("<Document/>").status is CheckStatus.FAILED


def test_an_object_without_a_namespace_is_judged_by_its_root_element() -> None:
    result = ISOGuard().verify_payment_message({"CstmrCdtTrfInitn": {"GrpHdr": {"MsgId": "M"}}})
    assert result.msg_type is not None
    assert result.msg_type.startswith("pain.001")


def test_what_is_given_twice_is_a_warning() -> None:
    text = text_of("pacs.008.001.08-sepa.xml").replace("<ChrgBr>", "<IntrBkSttlmDt>2026-03-03</IntrBkSttlmDt><ChrgBr>")
    (warning,) = verify(text).warnings
    assert warning.rule == "levels"
    assert verify(text).verified


def test_the_callers_decimal_context_changes_nothing() -> None:
    with localcontext(prec=3):
        assert verify(text_of("pain.001.001.03-sepa.xml"), "pain.001").verified
        assert not verify(text_of("pain.001.001.03-sepa.xml").replace("1734.56", "1734.57"), "pain.001").verified


def test_the_tables_are_whole() -> None:
    waiting = [message.kind for message in message_definitions().values()]
    assert len(waiting) == len(message_definitions()) == 91
    seen: set[str] = set()
    while waiting:
        kind = waiting.pop()
        if kind in seen:
            continue
        seen.add(kind)
        schema_type = type_of(kind)
        if isinstance(schema_type, ComplexType):
            assert schema_type.parts
            waiting.extend(part.kind for part in schema_type.parts.values())
        elif isinstance(schema_type, ValueWithAttributes):
            assert set(schema_type.attributes) == {"Ccy"}
    assert {name[:8] for name in message_definitions()} == set(FAMILIES)


def test_the_page_names_every_rule_and_every_version() -> None:
    page = (DATA.parents[1] / "docs" / "finance-iso20022.md").read_text()
    assert [rule for rule in RULES if f"`{rule}`" not in page] == []
    for family, versions in re.findall(r"^\| ([a-z]{4}\.\d{3}) \| (\S.*?) \|$", page, re.MULTILINE):
        listed: list[int] = []
        for first, last in re.findall(r"\.(\d\d)(?: to \.(\d\d))?", versions.replace(".001", "")):
            listed.extend(range(int(first), int(last or first) + 1))
        assert listed == [int(name[-2:]) for name in sorted(message_definitions()) if name.startswith(family)], family


_SCHEMA = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" elementFormDefault="qualified"
  targetNamespace="urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08">
  <xs:element name="Document"><xs:complexType><xs:sequence>
    <xs:any processContents="skip" maxOccurs="{most}" minOccurs="{most}"/>
  </xs:sequence></xs:complexType></xs:element></xs:schema>"""


@pytest.mark.parametrize(("most", "standing"), [(1, "VERIFIED"), (2, "FAILED")])
def test_a_schema_file_of_the_caller_is_asked_too(tmp_path: Path, most: int, standing: str) -> None:
    (tmp_path / "pacs.008.001.08.xsd").write_text(_SCHEMA.format(most=most))
    guard = ISOGuard(schemas=tmp_path)
    result = guard.verify_payment_message(text_of("pacs.008.001.08-sepa.xml"))
    assert result.status is CheckStatus(standing), result.issues
    assert guard.verify_payment_message(text_of("pacs.008.001.10-sepa.xml")).status is CheckStatus.UNVERIFIABLE
    (tmp_path / "pacs.008.001.08.xsd").write_text("<a")
    assert guard.verify_payment_message(text_of("pacs.008.001.08-sepa.xml")).status is CheckStatus.UNVERIFIABLE
