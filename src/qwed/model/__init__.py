"""Domain model: the protocol's decisions, effects, error codes and values. Standard library only."""

from qwed.model.canonical import CanonicalJsonError, canonical, sha256_of
from qwed.model.decision import Decision, Risk, Status, Trust
from qwed.model.effect import FILE_EFFECTS, OUTBOUND, RISK_OF, Effect, EffectKind, risk_of
from qwed.model.errors import ErrorCode
from qwed.model.event import Event
from qwed.model.facts import NO_FACTS, Facts
from qwed.model.money import MoneyError, micros_from, usd_from
from qwed.model.record import Record
from qwed.model.verdict import Verdict

__all__ = [
    "FILE_EFFECTS",
    "NO_FACTS",
    "OUTBOUND",
    "RISK_OF",
    "CanonicalJsonError",
    "Decision",
    "Effect",
    "EffectKind",
    "ErrorCode",
    "Event",
    "Facts",
    "MoneyError",
    "Record",
    "Risk",
    "Status",
    "Trust",
    "Verdict",
    "canonical",
    "micros_from",
    "risk_of",
    "sha256_of",
    "usd_from",
]
