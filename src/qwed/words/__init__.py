"""The vocabulary: every word of the protocol has one owner here. Standard library only."""

from qwed.words.canonical import NotCanonical, canonical, sha256_of
from qwed.words.decision import Decision, Risk, Status, Trust
from qwed.words.effect import LEAVING, ON_FILES, RISK_OF, Effect, EffectKind, risk_of
from qwed.words.errors import ErrorCode
from qwed.words.event import Event
from qwed.words.money import MoneyError, micros_from, usd_from
from qwed.words.record import Record
from qwed.words.verdict import Verdict

__all__ = [
    "LEAVING",
    "ON_FILES",
    "RISK_OF",
    "Decision",
    "Effect",
    "EffectKind",
    "ErrorCode",
    "Event",
    "MoneyError",
    "NotCanonical",
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
