"""The report as PDF: its text, its margins, and identical bytes for identical data."""

import io
import re
import subprocess
import sys
import threading
from datetime import date
from functools import cache
from typing import Any

import pypdf
import pypdfium2
import pytest

from qwed.reports._pdf_charts import MAX_BARS, axis_ticks, bars_of
from qwed.reports._pdf_text import MAX_CELL_LENGTH, TRUNCATED, format_usd, load_fonts, printable, truncate
from qwed.reports.pdf_format import pdf_bytes
from qwed.reports.report_data import DailyCounts, ReportData
from tests.unit.reports.sample_reports import empty, sample

_WIDTH, _MARGIN = 595.3, 50
_SHORT: dict[str, Any] = {"refusals": 2, "approvals": 4, "trust_changes": 4}


@pytest.fixture(scope="module", autouse=True)
def _fonts() -> None:
    load_fonts()


@cache
def _pdf(**changed: Any) -> bytes:
    return pdf_bytes(sample(**changed))


@cache
def _pages(document: bytes) -> list[str]:
    return [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(document)).pages]


def _text(document: bytes) -> str:
    return re.sub(r"\s+", " ", " ".join(_pages(document)))


def _unbroken(document: bytes) -> str:
    return re.sub(r"\s+", "", " ".join(_pages(document)))


def _require_sound(document: bytes) -> None:
    """Check that every page renders and no character is outside the margins."""
    drawn = pypdfium2.PdfDocument(document)
    try:
        for page in drawn:
            text = page.get_textpage()
            for index in range(text.count_rects()):
                left, bottom, right, top = text.get_rect(index)
                where = text.get_text_bounded(left, bottom, right, top)
                assert left >= _MARGIN, where
                assert right <= _WIDTH - _MARGIN, where
            assert len(set(bytes(page.render(scale=0.2).buffer))) > 10
    finally:
        drawn.close()


def test_it_says_whom_it_is_about_and_when() -> None:
    data = sample()
    first = _pages(_pdf())[0]
    for text in (
        "Compliance report",
        "invoice assistant",
        data.agent_id,
        "2025-12-01 00:00:00 (inclusive) to 2025-12-20 00:00:00 (exclusive)",
        data.report_id,
        "finance@example.com",
        "1, supervised",
        "max_rows".replace("_", " ").capitalize(),
        "1,000",
        "shell_command",
        "no limit",
    ):
        assert text in first


def test_every_page_has_its_number_and_the_report() -> None:
    data, pages = sample(), _pages(_pdf())
    assert len(pages) > 5
    for number, page in enumerate(pages, 1):
        assert f"page {number}" in page
        assert f"of {len(pages)}" in page
        assert data.report_id in page


@pytest.mark.parametrize(
    "text",
    [
        "2. Decisions",
        "Decisions per day",
        "Refusals by error code",
        "insufficient trust level",
        "Use of the budget",
        "raised 1 time by a person, lowered 1 time by a person and 1 time by a rule",
        "Trust raised, self-approved",
        "thirty days without an incident (stated approver: Ada Lovelace)",
        "12 requested; 3 approved, 3 rejected, 3 expired without an answer, 3 open at the end of the period",
        "approved, self-approved",
        "810 reported as done, 2 as failed, 1 without permission (executed_unpermitted)",
        "1 suspension, 1 complaint (a complaint suspends the agent), 1 reactivation, 1 rotation of its token",
        "The newest 40 of 80; all of them are in the JSON and CSV reports.",
        "kept for 1,219, erased for 10 and expired by retention for 2",
        "Inclusion of the period's first entry",
        "Inclusion of the period's last entry",
        "python verifier.py log.jsonl --head head.json --jwks jwks.json",
        "qwed audit verify --export log.jsonl --head head.json",
        "EU AI Act, Regulation (EU) 2024/1689",
        "Art. 12(2)(a)",
        "ISO/IEC 42001:2023",
        "A.6.2.8",
        "OWASP Top 10 for Agentic Applications 2026",
        "ASI10",
        "it claims no certification and no conformity",
    ],
)
def test_it_says(text: str) -> None:
    assert text in _text(_pdf())


def test_what_is_long_is_broken_and_whole() -> None:
    data, text = sample(), _unbroken(_pdf())
    head = data.log.head
    assert head is not None
    first = data.log.first
    assert first is not None
    for whole in (head.root, head.signature, data.log.kid or "", data.log.leaves_sha256, first.leaf, *first.path):
        assert re.sub(r"\s+", "", whole) in text


def test_every_attestation_is_listed() -> None:
    data, text = sample(), _unbroken(_pdf())
    assert [row for row in data.attestations if f"{row.log_index}{row.attestation_id}" not in text] == []


def test_what_was_erased_or_ran_out_says_so() -> None:
    text = _text(_pdf())
    assert re.search(r"Trust lowered 1 to 2 key_\w+ \w+ erased", text)
    assert re.search(r"rejected 2025-12-06 11:00:00 key_\w+ \w+ expired", text)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"refusals": 130, "approvals": 60, "trust_changes": 40},
        {"days": 366, "first_day": "2024-12-01"},
        {"days": 1},
        {**_SHORT, "name": "W" * 200, "principal_id": "i" * 3_000, "reason": "no-break" * 300, "by": "key_" + "f" * 60},
        {**_SHORT, "reason": "漢" * 500, "approver": "Ж" * 128},
        {**_SHORT, "days": 2, "attestations": 0},
        {**_SHORT, "attestations": 3_000},
    ],
    ids=["everyday", "many", "a year", "a day", "long words", "other scripts", "none attested", "many attested"],
)
def test_nothing_runs_over_an_edge(changed: dict[str, Any]) -> None:
    _require_sound(_pdf(**changed))


def test_an_empty_report_can_be_read() -> None:
    document = pdf_bytes(empty())
    _require_sound(document)
    text = _text(document)
    for phrase in ("Nothing was decided in the period", "no signed head yet", "Nothing was used in the period"):
        assert phrase in text


def test_a_table_that_breaks_repeats_its_head() -> None:
    document = _pdf(refusals=130, approvals=60, trust_changes=40)
    pages = [page for page in _pages(document) if page.count("QWED-AGENT-TRUST-001") > 10]
    assert len(pages) >= 3
    assert [page for page in pages if "Type of action" not in page] == []


def test_the_same_data_gives_the_same_bytes() -> None:
    assert pdf_bytes(sample(**_SHORT, days=3)) != _pdf(**_SHORT)
    assert pdf_bytes(sample(**_SHORT)) == _pdf(**_SHORT)


def test_two_threads_make_two_whole_reports() -> None:
    documents: dict[int, bytes] = {}

    def make(days: int) -> None:
        documents[days] = pdf_bytes(sample(**_SHORT, days=days))

    threads = [threading.Thread(target=make, args=(days,)) for days in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert documents == {days: pdf_bytes(sample(**_SHORT, days=days)) for days in (2, 3)}


def test_it_has_an_outline_and_says_what_it_is() -> None:
    reader = pypdf.PdfReader(io.BytesIO(_pdf()))
    titles = [entry["/Title"] for entry in reader.outline]
    assert titles[0] == "1. The agent"
    assert titles[1] == "2. Decisions"
    assert titles[-1] == "Appendix: attestations"
    assert len(titles) == 12
    assert reader.metadata is not None
    assert reader.metadata.title == f"Compliance report {sample().report_id}"


@pytest.mark.parametrize(
    ("name", "reason", "approver"),
    [
        (
            "<b>bold</b> & <font color=red>red</font>",
            "<a href='file:///etc/passwd'>x</a>",
            "&lt;para&gt; &#0; &unknown;",
        ),
        ("<img src='https://example.com/x.png'/>", "a\x00b\x1b[31m\u202ec\u200d", "</para><para>"),
        ("{{name}} %s %(x)s $x", "(\\) Tj ET", "`backtick"),
    ],
)
def test_hostile_words_are_text(name: str, reason: str, approver: str) -> None:
    document = _pdf(**_SHORT, days=1, name=name, reason=reason, approver=approver)
    _require_sound(document)
    for text in (name, reason, approver):
        assert re.sub(r"\s+", "", printable(text)) in _unbroken(document)
    assert b"/URI" not in document
    assert b"/JavaScript" not in document


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("Łukasz Żółć", "Łukasz Żółć"),
        ("Příliš žluťoučký kůň ďábelské ódy", "Příliš žluťoučký kůň ďábelské ódy"),
        ("Árvíztűrő tükörfúrógép", "Árvíztűrő tükörfúrógép"),
        ("Țară și măr", "Țară și măr"),
        ("İstanbul Ģirts Ķīsis", "İstanbul Ģirts Ķīsis"),
        ("Zoe\u0308", "Zoë"),
        ("бот, Ελένη, Nguyễn", "бот, Ελένη, Nguyễn"),
        ("שלום", "[U+05E9 U+05DC U+05D5 U+05DD]"),
        ("x\u0301\u200b[中]", "x[U+0301 U+200B][[U+4E2D]]"),
        ("a 中文 b", "a [U+4E2D U+6587] b"),
        ("\U0001f980", "[U+1F980]"),
        ("tab\tand\nline", "tab and line"),
        ("\u202egpj", "[U+202E]gpj"),
        ("\ud800", "[U+D800]"),
        ("", ""),
    ],
)
def test_what_has_no_glyph_is_shown_as_its_number(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_accented_letters_can_be_read_off_the_page() -> None:
    document = _pdf(**_SHORT, days=1, name="Žofie Łukasiewicz Őze Țânțar Ďuriš Ελένη Иванова")
    _require_sound(document)
    assert "Žofie Łukasiewicz Őze Țânțar Ďuriš Ελένη Иванова" in _text(document)


def test_a_long_text_is_cut_and_says_so() -> None:
    assert truncate("x" * MAX_CELL_LENGTH) == "x" * MAX_CELL_LENGTH
    assert truncate("x" * (MAX_CELL_LENGTH + 1)) == "x" * MAX_CELL_LENGTH + TRUNCATED
    assert truncate("中" * MAX_CELL_LENGTH).endswith(TRUNCATED)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(0, "0.00"), (1, "1.00"), (0.05, "0.05"), (0.123456, "0.123456"), (1234.5, "1,234.50"), (1e-06, "0.000001")],
)
def test_money_is_shown_to_the_cent_or_exactly(amount: float, expected: str) -> None:
    assert format_usd(amount) == expected


@pytest.mark.parametrize(
    ("largest", "steps"),
    [(0, [0, 1]), (1, [0, 1]), (5, [0, 1, 2, 3, 4, 5]), (6, [0, 2, 4, 6]), (99, [0, 20, 40, 60, 80, 100])],
)
def test_an_axis_has_round_steps(largest: int, steps: list[int]) -> None:
    assert list(axis_ticks(largest)) == steps


@pytest.mark.parametrize("largest", [1, 7, 42, 999, 1_000, 123_456, 10**12])
def test_an_axis_reaches_above_the_largest_bar_in_few_steps(largest: int) -> None:
    steps = axis_ticks(largest)
    assert steps[-1] >= largest
    assert 2 <= len(steps) <= 6


def test_a_chart_shows_days_without_a_decision() -> None:
    days = (DailyCounts(day="2025-12-01", total=2, approved=2), DailyCounts(day="2025-12-04", total=1, denied=1))
    bars, width = bars_of(days, date(2025, 12, 1), date(2025, 12, 5))
    assert width == 1
    assert [bar.counts for bar in bars] == [(2, 0, 0, 0, 0), (0,) * 5, (0,) * 5, (0, 0, 0, 1, 0), (0,) * 5]


def test_a_long_chart_has_a_bar_for_each_week() -> None:
    data: ReportData = sample(days=366, first_day="2024-12-01")
    bars, width = bars_of(data.decisions.by_day, date(2024, 12, 1), date(2025, 12, 1))
    assert width == 7
    assert len(bars) <= MAX_BARS
    assert sum(sum(bar.counts) for bar in bars) == data.summary.total_actions


def test_what_draws_it_is_not_loaded_before_it_is_wanted() -> None:
    program = "import sys, qwed.api.app, qwed.gate; sys.exit('reportlab' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
