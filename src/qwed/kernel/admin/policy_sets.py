"""Policy set of an organisation: what is in force, and the logged changes of it (DESIGN 11)."""

from collections.abc import Iterable

from qwed.domain.change_parts import Conflict, PolicySetChanged
from qwed.domain.policy_set import PolicyDocument, PolicySet
from qwed.domain.write_set import WriteSet
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change
from qwed.kernel.services import Services
from qwed.model import ErrorCode, Event

ANY_VERSION = None
"""Expected version of a change that replaces whatever is in force."""
_MAX_ATTEMPTS = 8


async def replace_policies(
    documents: Iterable[PolicyDocument], expected: int | None, actor: Actor, services: Services, *, about: str = ""
) -> tuple[PolicySet, PolicySet] | Problem:
    """Put these documents in force if the present version is the expected one, and return the set before and after.

    The same documents once more change nothing, whatever version is expected: a repeated request is no conflict.
    """
    documents = tuple(sorted(documents))
    for _ in range(_MAX_ATTEMPTS):
        before = services.store.policies(actor.organisation_id)
        if before.documents == documents and not before.damage:
            return before, before
        if expected not in (ANY_VERSION, before.version):
            return refuse_version(before)
        after = before.with_documents(documents)
        if await _commit(_change_of(before, after, actor, services, about), services):
            return before, after
    return refuse_version(services.store.policies(actor.organisation_id))


async def _commit(change: WriteSet, services: Services) -> bool:
    """Return True if the change is durable, False if another one was made meanwhile."""
    if services.at_stage is not None:
        services.at_stage("change")
    result = await services.store.commit(change)
    if isinstance(result, Conflict):
        return False
    if services.at_stage is not None:
        services.at_stage("changed")
    return True


def _change_of(before: PolicySet, after: PolicySet, actor: Actor, services: Services, about: str) -> WriteSet:
    now = services.clock.now()
    changes = before.changes_to(after)
    texts = {name: after.text_of(name) for name in (*changes.added, *changes.changed)}
    return build_change(
        Event.POLICIES_CHANGED,
        actor.actor_id,
        actor.organisation_id,
        now,
        services,
        about=about or None,
        content={**changes._asdict(), "documents": texts},
        parts=(PolicySetChanged(actor.organisation_id, before, after, now, actor.actor_id),),
        policies=changes.policy_ids,
        policy_set=after.digest,
        policy_version=after.version,
    )


def refuse_version(present: PolicySet) -> Problem:
    """Return the problem with a change of a version that is not in force any more."""
    return problem(
        ErrorCode.PRECONDITION_FAILED,
        f"version {present.version} of the policies is in force",
        details={"version": present.version, "digest": present.digest},
    )


async def roll_back(
    version: int, expected: int | None, actor: Actor, services: Services
) -> tuple[PolicySet, PolicySet] | Problem:
    """Put the documents of an earlier version in force again, as a new version."""
    earlier = services.store.policy_set(actor.organisation_id, version)
    if earlier is None:
        return problem(ErrorCode.NOT_FOUND, f"there is no version {version} of the policies")
    if earlier.damage:
        return problem(ErrorCode.POLICIES_DAMAGED, earlier.damage)
    return await replace_policies(earlier.documents, expected, actor, services, about=f"version {version}")
