"""ProvenanceGuard: check a text against its record of origin, and for disclosure that a machine wrote it."""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from qwed.model import Risk
from qwed.packs.check import PackCheck
from qwed.packs.result import Result, UnreadableInputError, status_of, unverifiable_on_error
from qwed.packs.unwrap import unwrap
from qwed_legal._provenance.disclosure import has_disclosure

_MAX_CONTENT = 500_000
_MAX_NAME = 200
_MAX_MODELS = 1_000
_HASH = re.compile(r"(?:sha-?256:)?([0-9a-f]{64})", re.IGNORECASE | re.ASCII)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|z|[+-][0-9]{2}:?[0-9]{2})"
)
_MAX_CLOCK_SKEW = timedelta(seconds=60)
"""Allowed clock difference to the writer of the record."""
_RULE = (
    "the record names the text by its SHA-256, the model and the moment; the text says that a machine wrote it "
    "(compare Article 50 of Regulation (EU) 2024/1689)"
)
_RISKS = {"content_hash": Risk.HIGH, "allowed_model": Risk.HIGH, "disclosure": Risk.MEDIUM, "human_review": Risk.MEDIUM}


@dataclass(frozen=True, kw_only=True)
class ProvenanceResult(Result):
    """Checks that the text and its record passed, and the risk of relying on them."""

    checks_passed: list[str] = field(default_factory=list)
    checks_failed: list[str] = field(default_factory=list)
    risk: str = Risk.HIGH.word
    """`low` if every check passed, `high` if the text or the model differs from the recorded or allowed one."""


class ProvenanceCheck(NamedTuple):
    """Outcome of one check, with a reproducible explanation."""

    name: str
    passed: bool
    message: str


def _now() -> datetime:
    return datetime.now(UTC)


class ProvenanceGuard:
    """Guard that compares a text with its record of origin."""

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

    @unverifiable_on_error(ProvenanceResult)
    def verify_provenance(self, content: Any, provenance: Any) -> ProvenanceResult:
        """Verify that the record is complete, matches this text, and that the required properties hold."""
        encoded = _encode_content(content)
        if not isinstance(provenance, Mapping):
            raise UnreadableInputError(
                "`provenance` must be an object with `content_hash`, `model_id`, `generation_timestamp`"
            )
        checks = self._checks(content, encoded, provenance)
        failed = tuple(check for check in checks if not check.passed)
        return ProvenanceResult(
            status=status_of(not failed),
            message="; ".join(check.message for check in failed) or f"all {len(checks)} checks passed",
            rule=_RULE,
            by_hand=tuple(check.message for check in checks),
            checks_passed=[check.name for check in checks if check.passed],
            checks_failed=[check.name for check in failed],
            risk=max((_RISKS.get(check.name, Risk.MEDIUM) for check in failed), default=Risk.LOW).word,
        )

    def _checks(self, content: str, encoded: bytes, record: Mapping[Any, Any]) -> tuple[ProvenanceCheck, ...]:
        now = self.clock()
        checks = [
            _check_hash(encoded, record.get("content_hash")),
            _check_model(record.get("model_id")),
            _check_generated(record, now),
        ]
        if self.allowed_models is not None:
            checks.append(_check_allowed(record.get("model_id"), _parse_models(self.allowed_models)))
        if _require_bool("require_disclosure", self.require_disclosure):
            checks.append(_check_disclosure(content))
        if _require_bool("require_human_review", self.require_human_review):
            checks.append(_check_review(record, now))
        return tuple(checks)


def _encode_content(content: Any) -> bytes:
    if not isinstance(content, str) or not content.strip():
        raise UnreadableInputError("`content` must be a text")
    if len(content) > _MAX_CONTENT:
        raise UnreadableInputError(f"`content` is longer than {_MAX_CONTENT:,} characters")
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise UnreadableInputError("`content` has half of a character in it and no UTF-8") from None


def _require_bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UnreadableInputError(f"`{name}` must be true or false")
    return value


def _parse_models(models: Any) -> frozenset[str]:
    allowed = unwrap(models)
    if isinstance(allowed, str) or not isinstance(allowed, list | tuple | set | frozenset):
        raise UnreadableInputError("`allowed_models` must be a list of names")
    if len(allowed) > _MAX_MODELS or not all(isinstance(name, str) for name in allowed):
        raise UnreadableInputError(f"`allowed_models` must be a list of at most {_MAX_MODELS:,} names")
    return frozenset(allowed)


def _check_hash(encoded: bytes, claimed: Any) -> ProvenanceCheck:
    actual = hashlib.sha256(encoded).hexdigest()
    written = _HASH.fullmatch(claimed.strip()) if isinstance(claimed, str) and len(claimed) <= _MAX_NAME else None
    if written is None:
        message = f"`content_hash` must be the SHA-256 of the content in 64 hexadecimal digits, which is {actual}"
        return ProvenanceCheck("content_hash", False, message)
    same = hmac.compare_digest(written[1].lower(), actual)
    other = "as `content_hash` says" if same else f"and `content_hash` is {written[1].lower()}"
    return ProvenanceCheck("content_hash", same, f"the SHA-256 of the content in UTF-8 is {actual}, {other}")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= _MAX_NAME


def _check_model(model: Any) -> ProvenanceCheck:
    if not _is_name(model):
        return ProvenanceCheck("model_id", False, "`model_id` must name the model")
    return ProvenanceCheck("model_id", True, f"`model_id` is `{model}`")


def _check_allowed(model: Any, allowed: frozenset[str]) -> ProvenanceCheck:
    passed = isinstance(model, str) and model in allowed
    listed = ", ".join(sorted(allowed)[:12]) or "none"
    return ProvenanceCheck(
        "allowed_model", passed, f"`model_id` is {'' if passed else 'not '}one of those allowed: {listed}"
    )


def _parse_moment(value: Any) -> datetime | None:
    """Parse a timestamp with its zone; None for anything else."""
    if isinstance(value, str) and _MOMENT.fullmatch(value.strip()):
        try:
            value = datetime.fromisoformat(value.strip().upper())
        except ValueError:
            return None
    if not isinstance(value, datetime) or value.utcoffset() is None:
        return None
    return value


def _check_past(name: str, value: Any, now: datetime) -> ProvenanceCheck:
    moment = _parse_moment(value)
    if moment is None:
        message = f"`{name}` must be a moment with its zone such as `2026-03-24T12:00:00+00:00`"
        return ProvenanceCheck(name, False, message)
    passed = moment - now <= _MAX_CLOCK_SKEW
    return ProvenanceCheck(name, passed, f"`{name}` is {moment.isoformat()}, {'not ' if passed else ''}in the future")


def _check_generated(record: Mapping[Any, Any], now: datetime) -> ProvenanceCheck:
    return _check_past("generation_timestamp", record.get("generation_timestamp"), now)


def _check_disclosure(content: str) -> ProvenanceCheck:
    passed = has_disclosure(content)
    verb = "says" if passed else "nowhere says, in words of its own such as `This memo was generated by AI`,"
    return ProvenanceCheck("disclosure", passed, f"the content {verb} that a machine wrote it")


def _check_review(record: Mapping[Any, Any], now: datetime) -> ProvenanceCheck:
    nested = record.get("human_review")
    review = nested if isinstance(nested, Mapping) else record
    at = _check_past("reviewed_at", review.get("reviewed_at"), now)
    if not _is_name(review.get("reviewer")):
        return ProvenanceCheck("human_review", False, "`reviewer` must name who reviewed the content")
    generated, reviewed = _parse_moment(record.get("generation_timestamp")), _parse_moment(review.get("reviewed_at"))
    if at.passed and generated is not None and reviewed is not None and reviewed < generated:
        return ProvenanceCheck("human_review", False, "`reviewed_at` is before `generation_timestamp`")
    return ProvenanceCheck("human_review", at.passed, f"`reviewer` is `{review['reviewer']}`; {at.message}")


def _check_provenance(
    content: Any,
    provenance: Any,
    require_disclosure: Any = True,
    require_human_review: Any = False,
    allowed_models: Any = None,
) -> ProvenanceResult:
    return ProvenanceGuard(require_disclosure, require_human_review, allowed_models).verify_provenance(
        content, provenance
    )


CHECKS = (
    PackCheck(
        name="provenance",
        says="whether a text is the one its record of origin speaks of, and says that a machine wrote it",
        ask=_check_provenance,
        required=("content", "provenance"),
        optional=("require_disclosure", "require_human_review", "allowed_models"),
        text="content",
    ),
)
