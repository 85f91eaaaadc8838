"""Policies and calls for tests: short documents, and inputs with defaults."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from qwed.model.decision import Risk
from qwed.policy import (
    CompiledPolicies,
    PolicyAgent,
    PolicyInput,
    PolicyOutcome,
    PolicyProblem,
    PolicySource,
    PolicyTool,
    compile_policies,
    evaluate,
)

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def rule(when: str, then: str = "deny", rule_id: str = "only", **more: object) -> str:
    """Return one rule as YAML."""
    lines = [f"  - id: {rule_id}", f"    when: '{when.replace(chr(39), chr(39) * 2)}'", f"    then: {then}"]
    return "\n".join([*lines, *(f"    {name}: {value}" for name, value in more.items())])


def policy(*rules: str, name: str = "tested", args: str = "", head: str = "") -> str:
    """Return a document of these rules."""
    stated = f"args: {{{args}}}\n" if args else ""
    return f"policy: {name}\nfacts: 1\n{head}{stated}rules:\n" + "\n".join(rules) + "\n"


def problems_of(*documents: str) -> tuple[PolicyProblem, ...]:
    """Return the problems of documents, which must have some."""
    compiled = compile_policies(PolicySource(f"{number}.yaml", text) for number, text in enumerate(documents, 1))
    assert isinstance(compiled, tuple), "the documents have no problem"
    return compiled


def compiled(*documents: str, schemas: Mapping[str, Any] | None = None) -> CompiledPolicies:
    """Return compiled documents, which must have no problem."""
    sources = (PolicySource(f"{number}.yaml", text) for number, text in enumerate(documents, 1))
    policies = compile_policies(sources, schemas)
    assert isinstance(policies, CompiledPolicies), "\n".join(problem.render() for problem in policies)
    return policies


def agent(**values: Any) -> PolicyAgent:
    """Return an agent of level 2."""
    return PolicyAgent(**{"agent_id": "agent_1", "trust": 2, "registered_trust": 2, **values})


def call(tool: str = "", **values: Any) -> PolicyInput:
    """Return a call of a tool, or another action."""
    defaults = {
        "action_type": "tool_call",
        "tool": PolicyTool(name=tool),
        "risk": Risk.HIGH,
        "agent": agent(),
        "now": NOW,
    }
    return PolicyInput(**{**defaults, **values})


def answer(document: str, **values: Any) -> PolicyOutcome:
    """Return the outcome of one document for a call."""
    return evaluate(compiled(document), call(**values))
