"""Operations on the policies of an organisation: what is in force, changes, versions, checks and explanations."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from qwed.domain.policy_set import DocumentChanges, PolicyDocument, PolicySet, PolicySetVersion
from qwed.kernel.admin.policy_sets import ANY_VERSION, replace_policies, roll_back
from qwed.kernel.agents.names import resolve_agent_id
from qwed.kernel.answer import Problem, problem
from qwed.kernel.operations.operation import OWNER, Call, E, operation
from qwed.kernel.pagination import DEFAULT_LIMIT, Limit, LogCursor
from qwed.kernel.policies.compiled_sets import PolicySetError
from qwed.kernel.policies.explanation import ExplanationView, explain_action
from qwed.kernel.policies.policy_check import check_documents, documents_of, sources_of
from qwed.kernel.request_schema import FieldRule, Name, RequestStruct
from qwed.kernel.views.agent_views import View
from qwed.model.clock import rfc3339
from qwed.model.endpoints import Endpoint
from qwed.policy import CompiledPolicies, PolicyProblem, PolicySource

MAX_DOCUMENTS = 500
_VERSIONS_PER_READ = 1_000
_MAX_FILE_NAME = 256
_TEXT = FieldRule("must be the text of a policy", wrong_type="")
_VERSION = Annotated[
    int,
    Meta(ge=0, le=10**18 - 1, description="Version of the policy set; omit it for the one in force."),
    FieldRule("must be the number of a version", E.BAD_OPTION),
]
_NO_CONDITION = "send If-Match with the version that you have read, or `*` to replace whatever is in force"


class DocumentRequest(RequestStruct):
    """Policy document; problems with it are named after the file."""

    text: Annotated[str, _TEXT]
    name: str | None = None


class PolicySetRequest(RequestStruct):
    """Whole policy set."""

    documents: Annotated[
        list[DocumentRequest],
        Meta(extra_json_schema={"maxItems": MAX_DOCUMENTS}),
        FieldRule(f"must be a list of at most {MAX_DOCUMENTS} documents"),
    ]


class PolicyRequest(RequestStruct):
    """Text of one policy."""

    text: Annotated[str, _TEXT]


class PolicySetQuery(RequestStruct):
    """Version of the policy set; without one, that in force."""

    version: _VERSION | None = None


class RollbackRequest(RequestStruct):
    """Version whose documents are put in force again."""

    version: _VERSION


class ExplainRequest(RequestStruct):
    """Action to explain, as POST /agents/{id}/verify takes it."""

    agent_id: Name
    action: Annotated[
        dict[str, Any],
        Meta(extra_json_schema={"required": ["type"], "properties": {"type": {"type": "string", "minLength": 1}}}),
        FieldRule("must be an action", wrong_type=""),
    ]
    options: dict[str, Any] | UnsetType = UNSET


class VersionsRequest(RequestStruct):
    """Page of versions."""

    limit: Limit = DEFAULT_LIMIT
    cursor: LogCursor | None = None

    @property
    def before(self) -> int | None:
        """Version before which the page begins; None for the first page."""
        return None if self.cursor is None else int(self.cursor)


class PolicyView(View, frozen=True, kw_only=True):
    """One policy of the set in force."""

    policy: str
    text: str
    version: int
    """Version of the policy set that is in force."""


class PolicyText(View, frozen=True, kw_only=True):
    """One policy of a set."""

    policy: str
    text: str


class PolicySetView(View, frozen=True, kw_only=True):
    """Policy set; `version` is its ETag."""

    version: int
    digest: str
    policies: list[PolicyText]


class PolicyChangesView(View, frozen=True, kw_only=True):
    """Policy set after a change, and the policies that were changed."""

    version: int
    digest: str
    changed: bool
    """False if the same set was in force already."""
    policies_added: list[str]
    policies_changed: list[str]
    policies_removed: list[str]


class PolicySetVersionView(View, frozen=True, kw_only=True):
    """One version of the policy set."""

    version: int
    digest: str
    changed_at: str
    changed_by: str
    policies_added: list[str]
    policies_changed: list[str]
    policies_removed: list[str]


class PolicySetVersionsView(View, frozen=True, kw_only=True):
    """Page of versions, newest first."""

    versions: list[PolicySetVersionView]
    next_cursor: str | None


class PolicyProblemView(View, frozen=True, kw_only=True):
    """Problem of a policy document, with its position."""

    file: str
    line: int
    column: int
    message: str
    policy: str
    rule: str


class PolicyCheckView(View, frozen=True, kw_only=True):
    """Result of a check: every problem with the documents."""

    valid: bool
    problems: list[PolicyProblemView]


def _etag(view: Any) -> str:
    return f'"{view.version}"'


_CHANGE_ERRORS = (E.POLICY_REFUSED, E.PRECONDITION_FAILED, E.POLICIES_DAMAGED)
_change = {"roles": OWNER, "conditional": True, "etag_of": _etag}


@operation(
    Endpoint.GET_POLICIES, "Get the policy set", errors=(E.NOT_FOUND, E.BAD_OPTION, E.POLICIES_DAMAGED), etag_of=_etag
)
def get_policies(call: Call, request: PolicySetQuery) -> PolicySetView | Problem:
    """Return the policy set in force, or one of its versions."""
    store, organisation_id = call.services.store, call.actor.organisation_id
    if request.version is None:
        policies: PolicySet | None = store.policies(organisation_id)
    else:
        policies = store.policy_set(organisation_id, request.version)
    if policies is None:
        return problem(E.NOT_FOUND, f"there is no version {request.version} of the policies")
    if policies.damage:
        return _damaged(policies)
    texts = [PolicyText(policy=policy_id, text=text) for policy_id, text in policies.documents]
    return PolicySetView(version=policies.version, digest=policies.digest, policies=texts)


@operation(Endpoint.PUT_POLICIES, "Replace the policy set", errors=_CHANGE_ERRORS, **_change)
async def put_policies(call: Call, request: PolicySetRequest) -> PolicyChangesView | Problem:
    """Put a whole policy set in force."""
    return await _put(call, _sources(request))


def _sources(request: PolicySetRequest) -> tuple[PolicySource, ...]:
    return tuple(
        PolicySource((document.name or f"document {number}")[:_MAX_FILE_NAME], document.text)
        for number, document in enumerate(request.documents, 1)
    )


async def _put(call: Call, sources: tuple[PolicySource, ...]) -> PolicyChangesView | Problem:
    expected = _expected_version(call)
    if isinstance(expected, Problem):
        return expected
    checked = check_documents(sources, call.actor.organisation_id, call.services)
    if not isinstance(checked, CompiledPolicies):
        return _refuse_documents(checked)
    return _changes_view(await replace_policies(documents_of(checked), expected, call.actor, call.services))


def _changes_view(changed: tuple[PolicySet, PolicySet] | Problem) -> PolicyChangesView | Problem:
    if isinstance(changed, Problem):
        return changed
    before, after = changed
    changes = before.changes_to(after)
    return PolicyChangesView(
        version=after.version, digest=after.digest, changed=after is not before, **_changed_ids(changes)
    )


def _changed_ids(changes: DocumentChanges) -> dict[str, list[str]]:
    return {f"policies_{name}": [*policy_ids] for name, policy_ids in changes._asdict().items()}


def _expected_version(call: Call) -> int | Problem | None:
    """Return the version that If-Match names, None for any."""
    text = (call.if_match or "").strip()
    if not text:
        return problem(E.MISSING_FIELD, _NO_CONDITION)
    if text == "*":
        return ANY_VERSION
    digits = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        return problem(E.BAD_OPTION, _NO_CONDITION)
    return int(digits)


def _refuse_documents(problems: tuple[PolicyProblem, ...]) -> Problem:
    views = [msgspec.to_builtins(_problem_view(one)) for one in problems]
    message = f"the policies are refused: {problems[0].render().splitlines()[0]}"
    return problem(E.POLICY_REFUSED, message, details={"problems": views})


def _problem_view(one: PolicyProblem) -> PolicyProblemView:
    return PolicyProblemView(
        file=one.file, line=one.line, column=one.column, message=one.message, policy=one.policy, rule=one.rule
    )


def _damaged(policies: PolicySet) -> Problem:
    return problem(E.POLICIES_DAMAGED, policies.damage, details={"version": policies.version})


@operation(Endpoint.CHECK_POLICIES, "Check policy documents")
def check_policies(call: Call, request: PolicySetRequest) -> PolicyCheckView:
    """Return the problems of documents, those of the organisation's approver groups included; nothing is stored."""
    checked = check_documents(_sources(request), call.actor.organisation_id, call.services)
    problems = () if isinstance(checked, CompiledPolicies) else checked
    return PolicyCheckView(valid=not problems, problems=[_problem_view(one) for one in problems])


@operation(
    Endpoint.EXPLAIN_POLICIES,
    "Explain what is decided about an action",
    errors=(E.AGENT_NOT_REGISTERED, E.AMBIGUOUS_NAME, E.POLICIES_DAMAGED, E.BAD_OPTION, E.NOT_DETERMINISTIC),
)
async def explain_policies(call: Call, request: ExplainRequest) -> ExplanationView | Problem:
    """Return which rules looked at an action and what would be decided; nothing is stored, charged or logged."""
    services = call.services
    agent_id = resolve_agent_id(request.agent_id, call.actor.organisation_id, services.store)
    if isinstance(agent_id, Problem):
        return agent_id
    agent = services.store.find_agent(agent_id)
    if agent is None or agent.organisation_id != call.actor.organisation_id:
        return problem(E.AGENT_NOT_REGISTERED)
    options = None if isinstance(request.options, UnsetType) else request.options
    try:
        return await explain_action(request.action, options, agent, services.clock.now(), services)
    except PolicySetError as error:
        return problem(E.POLICIES_DAMAGED, str(error))


@operation(Endpoint.ROLL_BACK_POLICIES, "Roll the policy set back", errors=(E.NOT_FOUND, *_CHANGE_ERRORS), **_change)
async def roll_back_policies(call: Call, request: RollbackRequest) -> PolicyChangesView | Problem:
    """Put the documents of an earlier version in force again, as a new version."""
    expected = _expected_version(call)
    if isinstance(expected, Problem):
        return expected
    earlier = call.services.store.policy_set(call.actor.organisation_id, request.version)
    if earlier is not None and not earlier.damage:
        checked = check_documents(sources_of(earlier.documents), call.actor.organisation_id, call.services)
        if not isinstance(checked, CompiledPolicies):
            return _refuse_documents(checked)
    return _changes_view(await roll_back(request.version, expected, call.actor, call.services))


@operation(Endpoint.LIST_POLICY_SETS, "List the versions of the policy set")
def list_policy_sets(call: Call, request: VersionsRequest) -> PolicySetVersionsView:
    """Return a page of the versions of the policy set, newest first."""
    return _versions_page(call, request, None)


@operation(Endpoint.LIST_POLICY_VERSIONS, "List the versions of a policy")
def list_policy_versions(call: Call, request: VersionsRequest) -> PolicySetVersionsView:
    """Return a page of the versions of the set that added, changed or removed a policy, newest first."""
    return _versions_page(call, request, call.path["policy_id"])


def _versions_page(call: Call, request: VersionsRequest, policy_id: str | None) -> PolicySetVersionsView:
    rows = list(islice(_versions(call, request.before, policy_id), request.limit + 1))
    page = rows[: request.limit]
    return PolicySetVersionsView(
        versions=[_version_view(row) for row in page],
        next_cursor=str(page[-1].version) if len(rows) > len(page) else None,
    )


def _versions(call: Call, before: int | None, policy_id: str | None) -> Iterator[PolicySetVersion]:
    """Yield the versions before one, newest first; only those that changed a policy, if it is named."""
    store, organisation_id = call.services.store, call.actor.organisation_id
    while page := store.policy_versions(organisation_id, _VERSIONS_PER_READ, before):
        yield from (row for row in page if policy_id is None or policy_id in row.changes.policy_ids)
        before = page[-1].version


def _version_view(row: PolicySetVersion) -> PolicySetVersionView:
    return PolicySetVersionView(
        version=row.version,
        digest=row.digest,
        changed_at=rfc3339(row.changed_at),
        changed_by=row.changed_by,
        **_changed_ids(row.changes),
    )


@operation(Endpoint.GET_POLICY, "Get a policy", errors=(E.NOT_FOUND, E.POLICIES_DAMAGED), etag_of=_etag)
def get_policy(call: Call) -> PolicyView | Problem:
    """Return one policy of the set in force."""
    policies = call.services.store.policies(call.actor.organisation_id)
    if policies.damage:
        return _damaged(policies)
    policy_id = call.path["policy_id"]
    text = policies.text_of(policy_id)
    if text is None:
        return problem(E.NOT_FOUND, "no policy in force has this name")
    return PolicyView(policy=policy_id, text=text, version=policies.version)


@operation(Endpoint.PUT_POLICY, "Add or replace a policy", errors=_CHANGE_ERRORS, **_change)
async def put_policy(call: Call, request: PolicyRequest) -> PolicyChangesView | Problem:
    """Put one policy in force, beside the others of the set."""
    policy_id = call.path["policy_id"]
    alone = check_documents((PolicySource(policy_id, request.text),), call.actor.organisation_id, call.services)
    if not isinstance(alone, CompiledPolicies):
        return _refuse_documents(alone)
    (document,) = documents_of(alone)
    if document.policy_id != policy_id:
        message = f"the text states the policy `{document.policy_id}`, not the one in the path"
        return problem(E.MALFORMED, message)
    return await _put_others(call, policy_id, (document,))


@operation(Endpoint.DELETE_POLICY, "Remove a policy", errors=(E.NOT_FOUND, *_CHANGE_ERRORS), **_change)
async def delete_policy(call: Call) -> PolicyChangesView | Problem:
    """Remove one policy from the set in force."""
    policies, policy_id = call.services.store.policies(call.actor.organisation_id), call.path["policy_id"]
    if not policies.damage and policies.text_of(policy_id) is None:
        return problem(E.NOT_FOUND, "no policy in force has this name")
    return await _put_others(call, policy_id, ())


async def _put_others(call: Call, policy_id: str, documents: tuple[PolicyDocument, ...]) -> PolicyChangesView | Problem:
    """Put the set in force with these documents in place of one policy."""
    policies = call.services.store.policies(call.actor.organisation_id)
    if policies.damage:
        return _damaged(policies)
    expected = _expected_version(call)
    if isinstance(expected, Problem):
        return expected
    others = tuple(document for document in policies.documents if document.policy_id != policy_id)
    checked = check_documents(sources_of((*others, *documents)), call.actor.organisation_id, call.services)
    if not isinstance(checked, CompiledPolicies):
        return _refuse_documents(checked)
    # Any other version would lose what its author changed beside this policy.
    expected = policies.version if expected is ANY_VERSION else expected
    return _changes_view(await replace_policies((*others, *documents), expected, call.actor, call.services))
