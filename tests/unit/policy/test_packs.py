"""Packs and examples: their own tests pass with the real engines, and an editor's schema accepts them."""

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from qwed.cli.policy.check_command import run_tests
from qwed.policy import CompiledPolicies, PolicySource, compile_policies
from qwed.policy.json_schema import policy_schema
from qwed.policy.pack_files import pack_names, read_pack
from qwed.policy.unreachable import find_unreachable_rules

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "policies").glob("*.yaml"))
PACKS = ("coding-agent", "customer-support", "data-analyst", "payments", "read-only")
LONGEST_EXAMPLE = 24
DOCUMENTS = [*map(read_pack, PACKS), *(PolicySource(path.name, path.read_text()) for path in EXAMPLES)]
VALIDATOR = Draft202012Validator(policy_schema())


def _compiled(document: PolicySource) -> CompiledPolicies:
    policies = compile_policies([document])
    assert isinstance(policies, CompiledPolicies), policies
    return policies


def test_all_packs_are_there() -> None:
    assert pack_names() == PACKS


def test_the_tests_of_all_packs_and_examples_pass() -> None:
    policies = compile_policies(DOCUMENTS)
    assert isinstance(policies, CompiledPolicies)
    results = run_tests(policies)
    assert [result.problem.render() for result in results if result.failure] == []
    assert len(results) == sum(len(owner.policy.tests) for owner in policies.policies) > 75


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_a_pack_or_example_has_tests_for_what_it_answers_and_no_rule_without_use(document: PolicySource) -> None:
    policies = _compiled(document)
    (owner,) = policies.policies
    expected = {test.expect for test in owner.policy.tests}
    assert {rule.then for rule in owner.policy.rules} <= expected
    assert find_unreachable_rules(policies) == ()
    assert owner.policy.policy_id == document.name.removesuffix(".yaml")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_schema_for_editors_accepts_it(document: PolicySource) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(document.text))] == []


@pytest.mark.parametrize(("change", "message"), [
    ({"ruls": []}, "Additional properties are not allowed ('ruls' was unexpected)"),
    ({"mode": "observe"}, "'observe' is not one of ['enforce', 'shadow']"),
    ({"facts": 2}, "1 was expected"),
])  # fmt: skip
def test_the_schema_for_editors_finds_mistakes(change: dict[str, object], message: str) -> None:
    document = {**yaml.safe_load(read_pack("read-only").text), **change}
    assert [error.message for error in VALIDATOR.iter_errors(document)] == [message]


def test_an_example_is_short() -> None:
    assert len(EXAMPLES) == 7
    assert [path.name for path in EXAMPLES if len(path.read_text().splitlines()) > LONGEST_EXAMPLE] == []


@pytest.mark.parametrize(("when", "reason"), [
    ("false", "its condition is false"),
    ('tool.name == "pay"', "its condition is about `pay`, and the policy applies to `refund`"),
    ("risk == \"low\"", "`second` denies under the same condition"),
])  # fmt: skip
def test_a_rule_that_never_decides_is_reported(when: str, reason: str) -> None:
    rules = f"  - {{id: first, when: '{when}', then: ask}}\n  - {{id: second, when: 'risk == \"low\"', then: deny}}\n"
    text = f"policy: p\nfacts: 1\napplies_to: {{tools: [refund]}}\nrules:\n{rules}"
    (problem,) = find_unreachable_rules(_compiled(PolicySource("p.yaml", text)))
    assert (problem.rule, problem.message) == ("first", f"the rule never decides: {reason}")
