"""Compiled policy sets, cached by their digest: a set is compiled once per process."""

from threading import Lock

from qwed.domain.policy_set import PolicyDocument, PolicySet
from qwed.model.lru_cache import LruCache
from qwed.policy import CompiledPolicies, PolicyProblem, PolicySource, compile_policies

_MAX_SETS = 64
_compiled: LruCache[str, CompiledPolicies] = LruCache(_MAX_SETS)
_lock = Lock()


class PolicySetError(Exception):
    """The policy set in force cannot be read or compiled, so that nothing can be decided under it."""


def compile_documents(documents: tuple[PolicyDocument, ...]) -> CompiledPolicies | tuple[PolicyProblem, ...]:
    """Return the compiled documents, or the problems with them."""
    return compile_policies(tuple(PolicySource(policy_id, text) for policy_id, text in documents))


def compiled_set(policies: PolicySet) -> CompiledPolicies:
    """Return a policy set ready to be evaluated; raise PolicySetError for a damaged one."""
    if policies.damage:
        raise PolicySetError(policies.damage)
    compiled = _compiled.get(policies.digest)
    if compiled is None:
        outcome = compile_documents(policies.documents)
        if not isinstance(outcome, CompiledPolicies):
            raise PolicySetError(f"version {policies.version} cannot be compiled: {outcome[0].render()}")
        compiled = outcome
        with _lock:
            _compiled[policies.digest] = compiled
    return compiled
