"""Policies: an organisation's own rules over what an action does."""

from qwed.policy.compiled_policies import NO_POLICIES, CompiledPolicies
from qwed.policy.compiler import compile_policies
from qwed.policy.document import PolicyAnswer, PolicySource, UsageKey
from qwed.policy.evaluator import Evaluation, evaluate, explain
from qwed.policy.policy_input import PolicyAgent, PolicyInput, PolicyOutcome, PolicyTool, ShadowOutcome
from qwed.policy.problem import PolicyProblem

__all__ = [
    "NO_POLICIES",
    "CompiledPolicies",
    "Evaluation",
    "PolicyAgent",
    "PolicyAnswer",
    "PolicyInput",
    "PolicyOutcome",
    "PolicyProblem",
    "PolicySource",
    "PolicyTool",
    "ShadowOutcome",
    "UsageKey",
    "compile_policies",
    "evaluate",
    "explain",
]
