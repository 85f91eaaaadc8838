"""Tables that are data files of a package, in its directory `data`. The module that parses a table checks it."""

import re
from collections.abc import Mapping
from pathlib import Path

_PART = re.compile(r"([A-Z_]+) = (.+)")
_PART_NAME = re.compile(r"\{([A-Z_]+)\}")


class DataFileError(ValueError):
    """A line of a data file does not have the form that its table has."""


def read_table(module_file: str, name: str) -> str:
    """Return the text of a data file beside a module; lines that begin with `# ` are comments."""
    text = (Path(module_file).parent / "data" / name).read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("# "))


def read_rows(module_file: str, name: str, columns: int) -> list[tuple[str, ...]]:
    """Return the lines of a data file, split at tabs; raise DataFileError if one has another number of columns."""
    rows = [tuple(line.split("\t")) for line in read_table(module_file, name).splitlines() if line]
    for number, row in enumerate(rows, 1):
        if len(row) != columns or not row[0]:
            raise DataFileError(f"`{name}` row {number} must have {columns} columns: `{row[0][:40]}`")
    return rows


def read_mapping(module_file: str, name: str) -> dict[str, str]:
    """Return the two columns of a data file as a mapping; raise DataFileError if a key occurs twice."""
    mapping: dict[str, str] = {}
    for key, value in read_rows(module_file, name, 2):
        if key in mapping:
            raise DataFileError(f"`{name}` has two rows for `{key}`")
        mapping[key] = value
    return mapping


def read_lists(module_file: str, name: str) -> dict[str, tuple[str, ...]]:
    """Return the second column of a data file by the first, in order."""
    lists: dict[str, list[str]] = {}
    for key, value in read_rows(module_file, name, 2):
        lists.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in lists.items()}


def read_rules(module_file: str, name: str) -> dict[str, str]:
    """Return the kind of each name in a data file of lines `KIND prefix: name name ...`.

    A line that begins with a blank continues the names. A later row for a name replaces an earlier one.
    """
    rules: dict[str, str] = {}
    kind = prefix = ""
    for number, line in enumerate(read_table(module_file, name).splitlines(), 1):
        names = line
        if not line.startswith(" "):
            head, _, names = line.partition(":")
            kind, _, prefix = head.partition(" ")
        if not (kind and names.strip()) or (prefix and " " in prefix):
            raise DataFileError(f"`{name}` row {number} must be `KIND prefix: name name ...`: `{line[:40]}`")
        rules.update({prefix + word: kind for word in names.split()})
    return rules


def read_patterns(module_file: str, name: str, parts: Mapping[str, str] | None = None) -> list[tuple[str, list[str]]]:
    """Return the headings of a data file, each with its patterns: the lines after it that begin with a blank.

    A line `NAME = pattern` defines a part, which `{NAME}` stands for in later lines; `parts` are defined already.
    """
    known = dict(parts or {})
    headings: list[tuple[str, list[str]]] = []
    for number, line in enumerate(read_table(module_file, name).splitlines(), 1):
        if missing := set(_PART_NAME.findall(line)) - known.keys():
            raise DataFileError(f"`{name}` row {number} has a part that is not defined: `{min(missing)}`")
        text = _PART_NAME.sub(lambda match: known[match[1]], line)
        if definition := _PART.fullmatch(text):
            known[definition[1]] = definition[2]
        elif text.startswith(" ") and headings:
            headings[-1][1].append(text[1:])
        elif text:
            headings.append((text, []))
    for heading, patterns in headings:
        if not patterns or heading.startswith(" "):
            raise DataFileError(f"`{name}` must have a heading, then its patterns: `{heading[:40]}`")
    return headings
