"""The tables of statements are true, and the checks report when they are not."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.checks import missing, unheard, unnamed, unread, unruled, unsaid, untrue, words_of
from tests.conformance.page import PAGE, page
from tests.conformance.statements import TESTS, Later, Statement, Table, Tables, faults, read

THERE = "spec/test_9_2_replay_detection.py::test_a_step_that_was_committed_is_a_replay"
ROW = f'[[statement]]\nsection = "9.2"\nsays = "A step is used once."\ntests = ["{THERE}"]\n'


def _written(folder: Path, text: str, name: str = "spec") -> Path:
    (folder / f"{name}.toml").write_text(text)
    return folder


def _statement(**fields: object) -> Statement:
    return Statement(**{"section": "9.2", "says": "A step is used once.", "tests": (THERE,), **fields})  # type: ignore[arg-type]


def _tables(*statements: Statement, name: str = "spec", words: tuple[str, ...] = ()) -> Tables:
    return {name: Table(statements, words)}


def test_every_statement_of_the_tables_is_true() -> None:
    assert [*untrue(read())] == []


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text() == page(read())


def test_the_command_tells_the_same_without_running_a_test() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance"], cwd=TESTS.parent, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_table_is_read(tmp_path: Path) -> None:
    assert read(_written(tmp_path, ROW)) == {"spec": Table((_statement(),))}


MALFORMED = [
    (ROW + 'colour = "red"\n', "colour"),
    (ROW.replace("section =", "sections ="), "sections"),
    (ROW.replace(f'["{THERE}"]', f'"{THERE}"'), "tests"),
    (ROW.replace("test_a_step", "a_step"), "tests"),
    (ROW.replace("spec/", "../"), "tests"),
    (ROW.replace("once.", "once | twice."), "says"),
    (ROW.replace("A step is used once.", "x" * 161), "says"),
    (ROW.replace("A step is used once.", ""), "says"),
    (ROW + 'later = "one day"\n', "one day"),
    (ROW + 'ruling = "5.1"\n', "ruling"),
    ("[[statements]]\n", "statements"),
    ("[[statement]\n", "spec.toml"),
]


@pytest.mark.parametrize(("text", "named"), MALFORMED, ids=lambda value: str(value)[-40:])
def test_a_table_that_is_malformed_is_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ValueError, match=r"spec\.toml") as caught:
        read(_written(tmp_path, text))
    assert named in str(caught.value)


def test_a_table_of_no_document_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`tales`.*guide, spec, a2a, sdk, mcp, rulings, design"):
        read(_written(tmp_path, ROW, "tales"))


BROKEN = [
    ({"tests": ()}, "one of `tests` and `later` is needed"),
    ({"later": Later.MCP}, "and not both"),
    ({"tests": (), "later": Later.MCP, "ruling": "4.15"}, "a ruling needs the test"),
    ({"tests": (THERE, THERE)}, "named twice"),
    ({"section": "9.9"}, "no such section"),
]


@pytest.mark.parametrize(("fields", "told"), BROKEN, ids=lambda value: str(value))
def test_a_row_that_shows_nothing_is_told(fields: dict[str, object], told: str) -> None:
    (fault,) = faults("spec", Table((_statement(**fields),)))
    assert told in fault


def test_a_statement_is_made_once() -> None:
    again = _statement(section="9.1", says="a step is  used ONCE.")
    assert [*faults("spec", Table((_statement(), again)))] == ["spec: said 2 times: a step is used once."]


@pytest.mark.parametrize("place", ["spec/test_nowhere.py::test_it", THERE + "_twice"])
def test_a_test_that_is_not_there_is_told(place: str) -> None:
    assert [*missing(_tables(_statement(tests=(THERE, place))))] == [f"there is no test {place}"]


def test_a_test_that_no_statement_names_is_told() -> None:
    every = unnamed({})
    assert THERE in every
    assert [place for place in every if place.startswith(("spec/test_coverage", "unit/"))] == []
    assert unnamed(_tables(_statement())) == [place for place in every if place != THERE]


def test_a_section_without_a_statement_is_told() -> None:
    told = [*unheard(_tables(_statement()))]
    assert "spec: no statement of section 9.1" in told
    assert "spec: no statement of section 9.2" not in told


def test_every_check_is_made() -> None:
    broken = _statement(says="A step.", tests=(THERE + "_twice",), ruling="4.15")
    told = [*untrue({"guide": Table((broken, broken), ("steps",)), "rulings": Table()})]
    for expected in (
        "guide: said 2 times: a step.",
        "guide 9.2: no such section: A step.",
        f"there is no test {THERE}_twice",
        "guide: no statement of section Overview",
        "guide: no statement says `steps`",
        "rulings: nothing is kept of 4.15",
        f"no statement names {THERE}",
    ):
        assert expected in told


def test_a_word_of_the_document_that_no_statement_says_is_told() -> None:
    tables = _tables(_statement(says="`step` is used, with QWED-AGENT-LOOP-002."), words=("step", "steps", "LOOP-002"))
    assert [*unsaid(tables)] == ["spec: no statement says `steps`", "spec: no statement says `LOOP-002`"]


def test_a_ruling_that_is_followed_is_kept() -> None:
    tables = _tables(_statement(ruling="4.3"))
    assert [*unruled(tables)] == []
    assert [*unruled({**tables, "rulings": Table()})] == ["rulings: nothing is kept of 4.3"]


PRINTED = """\
GET /agents/:id/budget
{"max_daily_usd": 100, "code": "QWED-AGENT-BUDGET-001"}
| **HIGH** | file\\_write |
| ---- | :--- |
<ParamField path="x" type="set | None" />
git_tree | Git tree object hash |
"""


def test_the_words_of_a_document_are_its_codes_fields_names_paths_and_rows() -> None:
    fields = {"max_daily_usd", "code", "file_write", "git_tree"}
    assert words_of(PRINTED) == {"/agents/:id/budget", "QWED-AGENT-BUDGET-001", "HIGH", *fields}


def test_a_word_that_is_printed_and_not_in_the_table_is_told(tmp_path: Path) -> None:
    (tmp_path / "001_x.txt").write_text("QWED-AGENT-001 and QWED-AGENT-002 of agent_abc123")
    tables = {"spec": Table((_statement(),), ("QWED-AGENT-001",), ("agent_abc123",))}
    assert [*unread(tables, tmp_path)] == ["spec: `QWED-AGENT-002` is a word of 001_x.txt and not of the table"]
    assert [*unread(tables, tmp_path / "nowhere")] == []
    assert [*unread({"spec": Table((_statement(),))}, tmp_path)] == []


def test_the_page_counts_and_shows_every_statement() -> None:
    waiting = _statement(says="It waits.", tests=(), later=Later.MCP)
    ruled = _statement(says="It is ruled, as a*b*c of <id> and `a*b<c`.", ruling="4.15")
    tables = _tables(_statement(), waiting, ruled)
    drawn = page(tables)
    link = "[a step that was committed is a replay](../tests/spec/test_9_2_replay_detection.py)"
    assert "### 9.2 Replay Detection\n" in drawn
    assert f"| A step is used once. | {link} | shown |" in drawn
    assert "| It waits. |  | to come: MCP server |" in drawn
    assert rf"| It is ruled, as a\*b\*c of \<id> and `a*b<c`. | {link} | shown, ruling 4.15 |" in drawn
    assert "(#the-specification-qwed-agent-11) | 3 | 2 | 1 |" in drawn
    drawn = page({**tables, "rulings": Table((_statement(section="4.15"),))})
    assert "| shown, [ruling 4.15](#ruling-415-compound-interest) |" in drawn
    assert "### Ruling 4.15 compound interest\n" in drawn
