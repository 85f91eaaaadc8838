"""Data files: every one is read by its package, and a row that is not of the form of its table is refused."""

import re
from pathlib import Path

import pytest

from qwed.model.data_files import (
    DataFileError,
    read_lists,
    read_mapping,
    read_patterns,
    read_rows,
    read_rules,
    read_table,
)
from tests.support.case_tables import each

SRC = Path(__file__).parents[3] / "src"
DATA_FILES = sorted(
    file for file in SRC.rglob("data/*.txt") if "grammar" not in file.parts and "LICENSE" not in file.name
)


@pytest.fixture
def data_file(tmp_path):
    (tmp_path / "data").mkdir()

    def write(text: str) -> str:
        (tmp_path / "data" / "table.txt").write_text(text, encoding="utf-8")
        return str(tmp_path / "module.py")

    return write


@each("file", DATA_FILES, ids=lambda file: f"{file.parts[-3]}/{file.name}")
def test_a_data_file_is_read_by_a_module_of_its_package(file):
    sources = (module.read_text(encoding="utf-8") for module in file.parent.parent.rglob("*.py"))
    assert any(f'"{name}"' in source for source in sources for name in (file.name, file.stem))


@each("file", DATA_FILES, ids=lambda file: f"{file.parts[-3]}/{file.name}")
def test_a_data_file_has_no_blanks_at_line_ends_and_ends_with_a_line(file):
    text = file.read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert not re.search(r"[ \r]\n|\n\n\n", text)


def test_comments_are_left_out_and_a_number_sign_in_a_row_is_kept(data_file):
    module = data_file("# what the table says\na\t1\n#b\t2\n\nc#\t3 # four\n")
    assert read_table(module, "table.txt") == "a\t1\n#b\t2\n\nc#\t3 # four\n"
    assert read_rows(module, "table.txt", 2) == [("a", "1"), ("#b", "2"), ("c#", "3 # four")]


@pytest.mark.parametrize("text", ["a\n", "a\t1\t2\n", "\t1\n", "a\t1\nb 2\n"])
def test_a_row_with_another_number_of_columns_is_refused(data_file, text):
    with pytest.raises(DataFileError, match=r"`table.txt` row \d must have 2 columns"):
        read_rows(data_file(text), "table.txt", 2)


def test_a_mapping_has_each_key_once_and_a_list_keeps_the_order(data_file):
    module = data_file("b\t2\na\t1\nb\t3\n")
    assert read_lists(module, "table.txt") == {"b": ("2", "3"), "a": ("1",)}
    with pytest.raises(DataFileError, match="two rows for `b`"):
        read_mapping(module, "table.txt")


def test_rules_have_a_kind_a_prefix_and_names_that_blanks_continue(data_file):
    module = data_file("# rules\nREAD os.: stat\n listdir\nWRITE : os.mkdir os.stat\n")
    assert read_rules(module, "table.txt") == {"os.stat": "WRITE", "os.listdir": "READ", "os.mkdir": "WRITE"}


@pytest.mark.parametrize("text", ["READ os.stat\n", "READ a b: os.stat\n", " os.stat\n"])
def test_names_without_a_kind_are_refused(data_file, text):
    with pytest.raises(DataFileError, match="must be `KIND prefix: name name"):
        read_rules(data_file(text), "table.txt")


def test_patterns_have_a_heading_and_their_parts_are_filled_in(data_file):
    module = data_file(
        "# digits\nTWO = \\d{2}\nYEAR = {CENTURY}{TWO}\n\nof a year\n in {YEAR}\n (?P<y>{YEAR})\nother\n  \\{x}\n"
    )
    assert read_patterns(module, "table.txt", {"CENTURY": "19"}) == [
        ("of a year", [r"in 19\d{2}", r"(?P<y>19\d{2})"]),
        ("other", [r" \{x}"]),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n {B}\n", "row 2 has a part that is not defined: `B`"),
        ("a\n {B}\nB = b\n", "row 2 has a part that is not defined: `B`"),
        (" b\n", "must have a heading, then its patterns"),
        ("a\nb\n c\n", "must have a heading, then its patterns: `a`"),
    ],
)
def test_patterns_without_a_heading_or_with_an_unknown_part_are_refused(data_file, text, message):
    with pytest.raises(DataFileError, match=message):
        read_patterns(data_file(text), "table.txt")
