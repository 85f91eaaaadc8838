"""Check of policy documents before they are put in force: every problem with its position."""

from collections.abc import Iterable, Iterator, Sequence

from qwed.domain.policy_set import PolicyDocument
from qwed.kernel.admin.approver_groups import members_of
from qwed.kernel.services import Services
from qwed.policy import CompiledPolicies, PolicyProblem, PolicySource, compile_policies
from qwed.policy.compiled_policies import CompiledRule

MAX_CHARACTERS = 512 * 1024
"""Characters of all documents of a set."""
RESERVED_IDS = frozenset({"versions"})
"""Names that a path of the API has already."""


def check_documents(
    sources: Sequence[PolicySource], organisation_id: str, services: Services
) -> CompiledPolicies | tuple[PolicyProblem, ...]:
    """Return the compiled set, or every problem with it, those of the organisation's approver groups included."""
    if sum(len(source.text) for source in sources) > MAX_CHARACTERS:
        return (_problem(f"the policies of an organisation have at most {MAX_CHARACTERS} characters together"),)
    compiled = compile_policies(sources)
    if not isinstance(compiled, CompiledPolicies):
        return compiled
    problems = (*_reserved(compiled), *_groups(compiled, organisation_id, services))
    return problems or compiled


def documents_of(compiled: CompiledPolicies) -> tuple[PolicyDocument, ...]:
    """Return the documents of a set under the ids that they state."""
    return tuple(PolicyDocument(one.policy.policy_id, one.policy.source.text) for one in compiled.policies)


def _reserved(compiled: CompiledPolicies) -> Iterator[PolicyProblem]:
    for one in compiled.policies:
        if one.policy.policy_id in RESERVED_IDS:
            yield _problem(f"the name `{one.policy.policy_id}` is reserved: give it another", one.policy.source.file)


def _groups(compiled: CompiledPolicies, organisation_id: str, services: Services) -> Iterator[PolicyProblem]:
    members = members_of(services.store.list_keys(organisation_id))
    for rule in compiled.rules:
        for group in rule.rule.approvers:
            if group not in members:
                advice = "an owner puts a key into it with PATCH /keys/{id}"
                yield _problem_of(rule, f"no key can approve in the name of the group `{group}`: {advice}")


def _problem_of(rule: CompiledRule, message: str) -> PolicyProblem:
    policy = rule.owner.policy
    return policy.source.problem(rule.rule.at, message, policy=policy.policy_id, rule=rule.rule.rule_id)


def _problem(message: str, file: str = "") -> PolicyProblem:
    return PolicyProblem(file=file, message=message)


def sources_of(documents: Iterable[PolicyDocument]) -> tuple[PolicySource, ...]:
    """Return stored documents as sources."""
    return tuple(PolicySource(policy_id, text) for policy_id, text in documents)
