"""Facts that engines find: tables, commands, paths, hosts and imports, complete only where nothing is missing."""

from dataclasses import asdict
from typing import Any

import msgspec
import pytest

from qwed.engines import code, shell, sql
from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.guards._shell.command_model import MAX_TARGET
from qwed.model import EffectKind, Facts
from qwed.model.canonical_names import canonical_path
from qwed.model.facts import MAX_ENTRIES, MAX_ENTRY_LENGTH
from tests.support.case_tables import each, rows

SCHEMA = "CREATE TABLE users (id INT, name TEXT, email TEXT); CREATE TABLE orders (id INT, user_id INT, total INT);"


def shown(facts: Facts) -> dict[str, Any]:
    """Return the groups that are present, with commands and effects as short lists."""
    members = msgspec.json.decode(msgspec.json.encode(facts))
    groups: dict[str, Any] = {name: group for name, group in members.items() if group is not None}
    if "shell" in groups:
        groups["shell"]["commands"] = [list(command.values()) for command in groups["shell"]["commands"]]
    if "code" in groups:
        groups["code"]["effects"] = [[effect["kind"], effect["target"]] for effect in groups["code"]["effects"]]
    return groups


def facts_of_sql(query: str, dialect: str | None = None, schema: bool = False) -> dict[str, Any]:
    policy = DataPolicy(dialect=dialect, schema_ddl=SCHEMA if schema else None)
    facts = sql.verify(EngineRequest(query=query, policy=policy)).facts.sql
    assert facts is not None
    return asdict(facts)


@each("row", rows("facts_sql.jsonl"))
def test_the_facts_of_a_statement_are_those_of_the_table(row):
    facts = facts_of_sql(row["query"], row.get("dialect"), row.get("schema", False))
    assert {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()} == row["facts"]


@each("row", rows("facts_shell.jsonl"))
def test_the_facts_of_a_command_are_those_of_the_table(row):
    assert shown(shell.verify(EngineRequest(query=row["command"])).facts) == row["facts"]


@each("row", rows("facts_code.jsonl"))
def test_the_facts_of_code_are_those_of_the_table(row):
    request = EngineRequest(code=row["code"], parameters={"language": row["language"]})
    assert shown(code.verify(request).facts) == row["facts"]


@pytest.mark.parametrize("table", ["facts_sql.jsonl", "facts_shell.jsonl", "facts_code.jsonl", "facts_calls.jsonl"])
def test_a_table_has_complete_and_incomplete_rows_of_different_texts(table):
    found = [(str({**row, "facts": None}), row["facts"]) for row in rows(table)]
    groups = [facts if "complete" in facts else next(iter(facts.values()), {}) for _, facts in found]
    assert {group.get("complete") for group in groups} >= {True, False}
    assert len({text for text, _ in found}) == len(found)


def test_a_list_with_too_many_entries_is_cut_off_and_not_complete():
    columns = ", ".join(f"c{number}" for number in range(MAX_ENTRIES + 1))
    facts = facts_of_sql(f"SELECT {columns} FROM t")
    assert len(facts["columns"]) == MAX_ENTRIES
    assert not facts["complete"]


def test_a_command_with_too_many_paths_is_not_complete():
    files = " ".join(f"/srv/{number}" for number in range(MAX_ENTRIES + 1))
    facts = shell.findings(f"rm {files}").facts.shell
    assert facts is not None
    assert len(facts.paths_written) == MAX_ENTRIES
    assert not facts.complete


def test_a_path_that_is_too_long_is_not_complete():
    facts = shell.findings(f"rm /{'a' * MAX_ENTRY_LENGTH}").facts.shell
    assert facts is not None
    assert not facts.complete


def test_a_cut_effect_still_has_its_whole_path():
    path = "/srv/" + "a" * 400
    findings = shell.findings(f"rm {path}")
    assert findings.facts.shell is not None
    assert findings.facts.shell.paths_written == (path,)


@pytest.mark.parametrize("text", ["", " ", "ls \u202e", "ls " + "a" * 70_000, "if", "rm /x)"])
def test_a_command_that_is_not_read_has_a_group_that_is_not_complete(text):
    facts = shell.verify(EngineRequest(query=text)).facts.shell
    assert facts is not None
    assert not facts.complete


@pytest.mark.parametrize("table", ["shell_adversary.jsonl", "shell_attacks.jsonl"])
def test_an_unresolved_command_never_has_complete_facts(table):
    verdicts = [shell.verify(EngineRequest(query=row["command"])) for row in rows(table)]
    unresolved = [
        verdict for verdict in verdicts if any(effect.kind is EffectKind.UNRESOLVED for effect in verdict.effects)
    ]
    assert unresolved
    assert [verdict for verdict in unresolved if verdict.facts.shell is None or verdict.facts.shell.complete] == []


_TABLES = ["facts_shell.jsonl", "shell_daily.jsonl", "shell_attacks.jsonl", "shell_honest.jsonl"]


@pytest.mark.parametrize("table", _TABLES)
def test_what_is_written_by_the_facts_is_written_by_the_effects(table):
    for row in rows(table):
        findings = shell.findings(row["command"])
        facts = findings.facts.shell
        assert facts is not None
        if findings.facts.code is not None or any(path.startswith("C:") for path in facts.paths_written):
            continue  # paths in code and of Windows are listed from the directory of the command
        changed = {effect.target for effect in findings.effects if effect.kind in (EffectKind.WRITE, EffectKind.DELETE)}
        paths = {path[:MAX_TARGET] if path.startswith("~") else canonical_path(path) for path in changed if path}
        assert {path[:MAX_TARGET] for path in facts.paths_written} <= paths, row["command"]
        if facts.complete:
            written = {path for path in paths if not path.startswith("database:")}
            assert written <= {path[:MAX_TARGET] for path in facts.paths_written}, row["command"]


@pytest.mark.parametrize("table", ["facts_sql.jsonl", "sql_honest.jsonl", "sql_attacks.jsonl"])
def test_the_tables_of_the_facts_are_those_of_the_effects(table):
    for row in rows(table):
        verdict = sql.verify(EngineRequest(query=row["query"], policy=DataPolicy(dialect=row.get("dialect"))))
        facts = verdict.facts.sql
        assert facts is not None
        kinds = {effect.kind for effect in verdict.effects}
        assert not (facts.complete and EffectKind.UNRESOLVED in kinds), row["query"]
        if not facts.complete:
            continue
        accessed = {effect.target for effect in verdict.effects if effect.kind is EffectKind.READ}
        assert accessed - {"information_schema"} <= set(facts.tables), row["query"]
        if kinds - {EffectKind.READ, EffectKind.SECRET}:
            assert set(facts.statements) - {"select", "values", "show", "describe", "explain"}, row["query"]
