"""ProvenanceGuard: whether a text is the one that its record of origin speaks of, and says that a machine wrote it."""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from qwed.packs.own import own
from qwed.packs.question import Question
from qwed.packs.result import Result, Unreadable, answering, standing
from qwed.words import Risk
from qwed_legal._provenance.disclosure import discloses

_LONGEST_CONTENT = 500_000
_LONGEST_NAME = 200
_MOST_MODELS = 1_000
_HASH = re.compile(r"(?:sha-?256:)?([0-9a-f]{64})", re.IGNORECASE | re.ASCII)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|z|[+-][0-9]{2}:?[0-9]{2})"
)
_SKEW = timedelta(seconds=60)
"""How far ahead the clock of whoever wrote the record may be."""
_RULE = (
    "the record names the text by its SHA-256, the model and the moment; the text says that a machine wrote it "
    "(compare Article 50 of Regulation (EU) 2024/1689)"
)
_RISKS = {"content_hash": Risk.HIGH, "allowed_model": Risk.HIGH, "disclosure": Risk.MEDIUM, "human_review": Risk.MEDIUM}


@dataclass(frozen=True, kw_only=True)
class ProvenanceResult(Result):
    """Which checks the text and its record passed, and how much it would matter to rely on them."""

    checks_passed: tuple[str, ...] = ()
    checks_failed: tuple[str, ...] = ()
    risk: str = Risk.HIGH.word
    """`low` where every check passed, `high` where the text or the model is another one than recorded or allowed."""


class Check(NamedTuple):
    """One check: what it found, in a sentence that somebody can redo."""

    name: str
    passed: bool
    said: str


def _now() -> datetime:
    return datetime.now(UTC)


class ProvenanceGuard:
    """Holds a text against its record of origin."""

    def __init__(
        self,
        require_disclosure: bool = True,
        require_human_review: bool = False,
        allowed_models: Iterable[str] | None = None,
        *,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self.require_disclosure = require_disclosure
        self.require_human_review = require_human_review
        self.allowed_models = allowed_models
        self.clock = clock

    @answering(ProvenanceResult)
    def verify_provenance(self, content: Any, provenance: Any) -> ProvenanceResult:
        """Whether the record is complete, is about this text, and what was required of the text holds."""
        encoded = _content(content)
        if not isinstance(provenance, Mapping):
            raise Unreadable("`provenance` must be an object with `content_hash`, `model_id`, `generation_timestamp`")
        checks = self._checks(content, encoded, provenance)
        failed = tuple(check for check in checks if not check.passed)
        return ProvenanceResult(
            status=standing(not failed),
            message="; ".join(check.said for check in failed) or f"all {len(checks)} checks passed",
            rule=_RULE,
            by_hand=tuple(check.said for check in checks),
            checks_passed=tuple(check.name for check in checks if check.passed),
            checks_failed=tuple(check.name for check in failed),
            risk=max((_RISKS.get(check.name, Risk.MEDIUM) for check in failed), default=Risk.LOW).word,
        )

    def _checks(self, content: str, encoded: bytes, record: Mapping[Any, Any]) -> tuple[Check, ...]:
        now = self.clock()
        found = [_hash(encoded, record.get("content_hash")), _model(record.get("model_id")), _generated(record, now)]
        if self.allowed_models is not None:
            found.append(_allowed(record.get("model_id"), _models(self.allowed_models)))
        if _flag("require_disclosure", self.require_disclosure):
            found.append(_disclosed(content))
        if _flag("require_human_review", self.require_human_review):
            found.append(_reviewed(record, now))
        return tuple(found)


def _content(content: Any) -> bytes:
    if not isinstance(content, str) or not content.strip():
        raise Unreadable("`content` must be a text")
    if len(content) > _LONGEST_CONTENT:
        raise Unreadable(f"`content` is longer than {_LONGEST_CONTENT:,} characters")
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise Unreadable("`content` has half of a character in it and no UTF-8") from None


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unreadable(f"`{name}` must be true or false")
    return value


def _models(given: Any) -> frozenset[str]:
    allowed = own(given)
    if isinstance(allowed, str) or not isinstance(allowed, list | tuple | set | frozenset):
        raise Unreadable("`allowed_models` must be a list of names")
    if len(allowed) > _MOST_MODELS or not all(isinstance(name, str) for name in allowed):
        raise Unreadable(f"`allowed_models` must be a list of at most {_MOST_MODELS:,} names")
    return frozenset(allowed)


def _hash(encoded: bytes, given: Any) -> Check:
    actual = hashlib.sha256(encoded).hexdigest()
    written = _HASH.fullmatch(given.strip()) if isinstance(given, str) and len(given) <= _LONGEST_NAME else None
    if written is None:
        said = f"`content_hash` must be the SHA-256 of the content in 64 hexadecimal digits, which is {actual}"
        return Check("content_hash", False, said)
    same = hmac.compare_digest(written[1].lower(), actual)
    other = "as `content_hash` says" if same else f"and `content_hash` is {written[1].lower()}"
    return Check("content_hash", same, f"the SHA-256 of the content in UTF-8 is {actual}, {other}")


def _named(given: Any) -> bool:
    return isinstance(given, str) and bool(given.strip()) and len(given) <= _LONGEST_NAME


def _model(given: Any) -> Check:
    if not _named(given):
        return Check("model_id", False, "`model_id` must name the model")
    return Check("model_id", True, f"`model_id` is `{given}`")


def _allowed(given: Any, allowed: frozenset[str]) -> Check:
    passed = isinstance(given, str) and given in allowed
    listed = ", ".join(sorted(allowed)[:12]) or "none"
    return Check("allowed_model", passed, f"`model_id` is {'' if passed else 'not '}one of those allowed: {listed}")


def _moment(given: Any) -> datetime | None:
    """A moment with its zone; None for anything else."""
    if isinstance(given, str) and _MOMENT.fullmatch(given.strip()):
        try:
            given = datetime.fromisoformat(given.strip().upper())
        except ValueError:
            return None
    if not isinstance(given, datetime) or given.utcoffset() is None:
        return None
    return given


def _past(name: str, given: Any, now: datetime) -> Check:
    moment = _moment(given)
    if moment is None:
        said = f"`{name}` must be a moment with its zone such as `2026-03-24T12:00:00+00:00`"
        return Check(name, False, said)
    passed = moment - now <= _SKEW
    return Check(name, passed, f"`{name}` is {moment.isoformat()}, {'not ' if passed else ''}in the future")


def _generated(record: Mapping[Any, Any], now: datetime) -> Check:
    return _past("generation_timestamp", record.get("generation_timestamp"), now)


def _disclosed(content: str) -> Check:
    passed = discloses(content)
    said = "says" if passed else "nowhere says, in words of its own such as `This memo was generated by AI`,"
    return Check("disclosure", passed, f"the content {said} that a machine wrote it")


def _reviewed(record: Mapping[Any, Any], now: datetime) -> Check:
    nested = record.get("human_review")
    review = nested if isinstance(nested, Mapping) else record
    at = _past("reviewed_at", review.get("reviewed_at"), now)
    if not _named(review.get("reviewer")):
        return Check("human_review", False, "`reviewer` must name who reviewed the content")
    made, read = _moment(record.get("generation_timestamp")), _moment(review.get("reviewed_at"))
    if at.passed and made is not None and read is not None and read < made:
        return Check("human_review", False, "`reviewed_at` is before `generation_timestamp`")
    return Check("human_review", at.passed, f"`reviewer` is `{review['reviewer']}`; {at.said}")


def _ask(
    content: Any,
    provenance: Any,
    require_disclosure: Any = True,
    require_human_review: Any = False,
    allowed_models: Any = None,
) -> ProvenanceResult:
    return ProvenanceGuard(require_disclosure, require_human_review, allowed_models).verify_provenance(
        content, provenance
    )


QUESTIONS = (
    Question(
        name="provenance",
        says="whether a text is the one its record of origin speaks of, and says that a machine wrote it",
        ask=_ask,
        required=("content", "provenance"),
        optional=("require_disclosure", "require_human_review", "allowed_models"),
        text="content",
    ),
)
