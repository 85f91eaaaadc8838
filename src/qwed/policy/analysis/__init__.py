"""Proofs about policies: what an edit changes, and which rules can never decide.

The solver takes time and memory, so a proof is made by a command or by an engine worker, never while a request waits.
"""

from qwed.policy.analysis.comparison import Change, ChangeProof, Comparison, compare_policies
from qwed.policy.analysis.model_search import ProofStatus
from qwed.policy.analysis.report import approver_changes, comparison_values, describe_call, describe_comparison
from qwed.policy.analysis.rule_warnings import find_rule_warnings
from qwed.policy.analysis.witness import Witness

__all__ = [
    "Change",
    "ChangeProof",
    "Comparison",
    "ProofStatus",
    "Witness",
    "approver_changes",
    "compare_policies",
    "comparison_values",
    "describe_call",
    "describe_comparison",
    "find_rule_warnings",
]
