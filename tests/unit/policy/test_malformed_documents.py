"""Malformed documents are refused with their position and the cause (table of tests/data)."""

from typing import Any

import pytest

from qwed.policy import PolicySource, compile_policies
from qwed.policy.document_reader import MAX_RULES
from qwed.policy.yaml_reader import MAX_BYTES, MAX_DEPTH
from tests.support.case_tables import each, rows
from tests.support.policy_calls import compiled, policy, problems_of, rule


@each("row", rows("policy_malformed.jsonl"), ids=lambda row: row["case"])
def test_a_malformed_document_is_refused_where_it_is_wrong(row: dict[str, Any]) -> None:
    first = problems_of(row["text"])[0]
    assert (first.line, first.column, first.message) == (row["line"], row["column"], row["message"])


def test_a_problem_shows_its_line_with_a_caret() -> None:
    (problem,) = problems_of(policy(rule("sql.tabels == []")))
    assert problem.render().splitlines() == [
        "1.yaml:5:15: `sql` has no field `tabels`: did you mean `tables`? "
        "use one of `statements`, `tables`, `columns`, `has_where`, `limit`",
        "      when: 'sql.tabels == []'",
        "                ^",
    ]
    assert (problem.policy, problem.rule) == ("tested", "only")


def test_all_problems_of_a_document_are_reported_at_once() -> None:
    text = policy(rule("tool.nam == 1", rule_id="a"), rule("risk > 1", rule_id="b"), rule("true", "maybe", "c"))
    assert [problem.line for problem in problems_of(text)] == [12]
    text = text.replace("maybe", "deny")
    assert [problem.line for problem in problems_of(text)] == [5, 8]


def test_two_policies_of_one_name_are_refused() -> None:
    (problem,) = problems_of(policy(rule("true")), policy(rule("true")))
    assert (problem.file, problem.message) == (
        "2.yaml",
        "the policy `tested` is already in `1.yaml`: give it another name",
    )


def test_a_document_that_is_too_large_is_refused_unread() -> None:
    (problem,) = problems_of("#" * (MAX_BYTES + 1))
    assert problem.message == f"a policy may have at most {MAX_BYTES} bytes, not {MAX_BYTES + 1}: split it"


@pytest.mark.parametrize("text", ["[" * 200_000, "{" * 200_000, "- " * 100_000, "a: [" * 50_000, '{"a":' * 50_000])
def test_a_document_that_is_nested_too_deeply_is_refused(text: str) -> None:
    (problem,) = problems_of(text)
    assert problem.message == f"a policy may be nested at most {MAX_DEPTH} levels deep"


def test_too_many_rules_are_refused() -> None:
    (problem,) = problems_of(policy(*(rule("true", rule_id=f"r{number}") for number in range(MAX_RULES + 1))))
    assert problem.message == f"`rules` may have at most {MAX_RULES} entries, not {MAX_RULES + 1}"


def test_half_of_a_surrogate_pair_is_refused_with_its_position() -> None:
    (problem,) = problems_of("policy: p\ndescription: \ud800\n")
    assert (problem.line, problem.column) == (2, 14)
    assert problem.render().isprintable() or "\n" in problem.render()


def test_json_is_read_as_well() -> None:
    text = '{"policy": "p", "facts": 1, "rules": [{"id": "r", "when": "tool.name == \\"a\\"", "then": "deny"}]}'
    assert len(compiled(text).rules) == 1


@pytest.mark.parametrize(("written", "line", "column"), [
    (">-\n      true &&\n      tool.nam == 'a'", 7, 11),
    ("|\n      true &&\n        tool.nam == 'a'", 7, 13),
    ("true &&\n      tool.nam == 'a'", 6, 11),
    ('"true &&\n      tool.nam == 1"', 6, 11),
    ("'tool.nam == \"a\"'", 5, 16),
    ("tool.nam == 'a'", 5, 15),
])  # fmt: skip
def test_a_mistake_in_a_condition_is_shown_in_its_line_however_it_is_written(
    written: str, line: int, column: int
) -> None:
    (problem,) = problems_of(f"policy: p\nfacts: 1\nrules:\n  - id: r\n    when: {written}\n    then: deny\n")
    assert (problem.line, problem.column) == (line, column)


def test_a_mistake_in_a_condition_with_escapes_names_the_character() -> None:
    (problem,) = problems_of('policy: p\nfacts: 1\nrules:\n  - {id: r, when: "tool.n\\x61m == 1", then: deny}\n')
    assert (problem.line, problem.column) == (4, 19)
    assert problem.message.endswith("(character 5)")


def test_a_name_is_refused_wherever_its_text_comes_from() -> None:
    outcome = compile_policies([PolicySource("stored", "policy: p\nfacts: 1\nrules: 5\n")])
    assert isinstance(outcome, tuple)
    assert outcome[0].file == "stored"
