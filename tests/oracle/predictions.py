"""Predictions of the classifiers in the form the oracle compares."""

from typing import NamedTuple

from qwed.guards import shell
from qwed.guards.code_guard import CodeGuard
from qwed.model import EffectKind, Risk, risk_of


class Prediction(NamedTuple):
    """What a classifier said of an input."""

    risk: Risk
    kinds: frozenset[EffectKind] = frozenset()
    programs: frozenset[str] = frozenset()
    reason: str = ""

    @property
    def is_harmless(self) -> bool:
        """Return True if nothing worse than a read or a connection was predicted."""
        return self.risk <= Risk.MEDIUM


def predict_shell(command: str) -> Prediction:
    """Return what the shell guard predicts."""
    findings = shell.findings(command)
    kinds = frozenset(effect.kind for effect in findings.effects)
    risk = Risk.CRITICAL if findings.violations else risk_of(findings.effects)
    reason = "; ".join((*findings.violations, *findings.unresolved))
    return Prediction(risk, kinds, frozenset(findings.programs), reason)


def predict_python(code: str) -> Prediction:
    """Return what CodeGuard predicts: low for a verified program, critical otherwise."""
    safety = CodeGuard().verify_safety(code)
    return Prediction(Risk.LOW if safety.verified else Risk.CRITICAL, reason=safety.message)
