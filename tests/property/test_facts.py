"""Generated commands and statements: complete facts miss nothing, whatever stands around a command."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from qwed.engines import shell, sql
from qwed.engines.protocol import EngineRequest
from qwed.model import EffectKind, Verdict
from qwed.model.canonical_names import canonical_path
from qwed.model.facts import ShellFacts, SqlFacts

NAMES = st.sampled_from(["a", "b.txt", ".env", "..", ".", "x y", "*", "q?", "$v", "~", "src", "é", "-r", "a'b"])
PATHS = st.builds(
    lambda root, parts: root + "/".join(parts),
    st.sampled_from(["/", "/srv/", "//", "", "./", "../"]),
    st.lists(NAMES, max_size=4),
)
WORDS = st.one_of(PATHS.map(shlex.quote), PATHS.filter(lambda path: " " not in path and "'" not in path))
COMMANDS = st.one_of(
    st.builds("rm {} {}".format, st.sampled_from(["", "-rf", "-r --force", "--"]), WORDS),
    st.builds("{} {} {}".format, st.sampled_from(["cp", "mv", "ln -s", "cp -r"]), WORDS, WORDS),
    st.builds("cat {} > {}".format, WORDS, WORDS),
    st.builds("{} {}".format, st.sampled_from(["ls", "touch", "mkdir -p", "grep -r x", "head -5", "tee"]), WORDS),
    st.builds("find {} -name x -delete".format, WORDS),
    st.builds("cd {}".format, WORDS),
    st.sampled_from(["git status", "git push origin main", "make", "unknown", "curl https://example.com/", "eval x"]),
)
SCRIPTS = st.builds(
    lambda first, rest: first + "".join(mark + command for mark, command in rest),
    COMMANDS,
    st.lists(st.tuples(st.sampled_from([" && ", "; ", " || ", " | ", "\n", " & "]), COMMANDS), max_size=3),
)
WRAPPERS = st.sampled_from(
    ["{}", "({})", "{{ {}; }}", "if true; then {}; fi", "for i in 1 2; do {}; done", "f() {{ {}; }}; f"]
)
CHANGES = (EffectKind.WRITE, EffectKind.DELETE)


def judged(command: str) -> tuple[Verdict, ShellFacts]:
    verdict = shell.verify(EngineRequest(query=command))
    assert verdict.facts.shell is not None
    return verdict, verdict.facts.shell


@given(SCRIPTS, WRAPPERS)
def test_complete_facts_of_a_script_list_every_path_that_its_effects_change(script, wrapper):
    verdict, facts = judged(wrapper.format(script))
    changed = {canonical_path(effect.target) for effect in verdict.effects if effect.kind in CHANGES and effect.target}
    read = {canonical_path(effect.target) for effect in verdict.effects if effect.kind is EffectKind.READ}
    listed = {canonical_path(path) for path in facts.paths_written if path}
    assert listed <= changed
    if facts.complete:
        assert changed <= listed
        assert read <= set(facts.paths_read)
        assert all(path.startswith("/") for path in (*facts.paths_read, *facts.paths_written))
        beyond = {EffectKind.UNRESOLVED, EffectKind.EXECUTE, EffectKind.ADMIN}
        assert beyond.isdisjoint(effect.kind for effect in verdict.effects if effect.target not in listed)
        assert not verdict.violations


@given(SCRIPTS)
def test_a_directory_that_is_certain_makes_no_path_relative(script):
    _, facts = judged(f"cd /srv/app || exit\n{script}")
    if facts.complete:
        assert all(path.startswith("/") for path in (*facts.paths_read, *facts.paths_written))


@given(SCRIPTS, st.sampled_from(["sudo {}", "env {}", "nohup {}", "bash -c {}"]))
def test_a_wrapper_hides_no_path_of_a_command(script, wrapper):
    inner = shlex.quote(script) if wrapper.startswith("bash") else f"sh -c {shlex.quote(script)}"
    _, plain = judged(f"sh -c {shlex.quote(script)}")
    _, wrapped = judged(wrapper.format(inner))
    assert set(plain.paths_written) <= set(wrapped.paths_written)
    assert {command.program for command in plain.commands} - {"sh"} <= {command.program for command in wrapped.commands}
    assert plain.complete or not wrapped.complete


TABLES = st.sampled_from(["users", "hr.salaries", '"Users"', "public.t", "t u"])
READS = st.builds(
    "SELECT {} FROM {} {} {}".format,
    st.sampled_from(["a", "count(*)", "*", "u.a", "max(a)", "f(a)"]),
    TABLES,
    st.sampled_from(["", "WHERE a = 1", "WHERE 1=1", "WHERE a IN (SELECT b FROM other)", "WHERE x LIKE 'a%'"]),
    st.sampled_from(["", "LIMIT 5", "ORDER BY a", "UNION SELECT b FROM more", "LIMIT ALL"]),
)
WRITES = st.one_of(
    st.builds("DELETE FROM {} {}".format, TABLES, st.sampled_from(["", "WHERE a = 1", "RETURNING *"])),
    st.builds("UPDATE {} SET a = 1 {}".format, TABLES, st.sampled_from(["", "WHERE b = 2"])),
    st.builds("INSERT INTO {} (a) {}".format, TABLES, st.one_of(READS, st.just("VALUES (1)"))),
    st.builds("CREATE TABLE made AS {}".format, READS),
)
STATEMENTS = st.one_of(
    READS,
    WRITES,
    st.builds("WITH c AS ({}) SELECT a FROM c".format, st.one_of(READS, WRITES)),
    st.builds("EXPLAIN {}".format, st.one_of(READS, WRITES)),
    st.builds("{}; {}".format, READS, WRITES),
)


@given(STATEMENTS)
def test_complete_facts_of_a_statement_list_every_table_and_change_of_its_effects(text):
    verdict = sql.verify(EngineRequest(query=text))
    facts = verdict.facts.sql
    assert isinstance(facts, SqlFacts)
    kinds = {effect.kind for effect in verdict.effects}
    if not facts.complete:
        return
    assert EffectKind.UNRESOLVED not in kinds
    assert not verdict.violations
    accessed = {effect.target for effect in verdict.effects if effect.kind is EffectKind.READ}
    assert accessed <= set(facts.tables)
    assert "*" not in facts.columns
    if kinds & {EffectKind.WRITE, EffectKind.DELETE, EffectKind.ADMIN}:
        assert not {"select", "values", "explain"}.issuperset(facts.statements)
    if facts.has_where:
        assert not any(effect.unbounded for effect in verdict.effects)
