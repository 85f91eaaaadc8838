"""Legal deadlines, citations, liability, jurisdiction, limitation, provenance and fairness, checked without a model."""

from typing import TYPE_CHECKING

from qwed.words.lazy import lazily

if TYPE_CHECKING:
    from qwed_legal.citation import CitationGuard
    from qwed_legal.deadline import DeadlineGuard
    from qwed_legal.fairness import FairnessGuard
    from qwed_legal.jurisdiction import JurisdictionGuard
    from qwed_legal.legal import LegalGuard
    from qwed_legal.liability import LiabilityGuard
    from qwed_legal.limitations import StatuteOfLimitationsGuard
    from qwed_legal.provenance import ProvenanceGuard

# Each is imported when it is first used, and its libraries when it is first asked.
_HOME = {
    "CitationGuard": "qwed_legal.citation",
    "DeadlineGuard": "qwed_legal.deadline",
    "FairnessGuard": "qwed_legal.fairness",
    "JurisdictionGuard": "qwed_legal.jurisdiction",
    "LegalGuard": "qwed_legal.legal",
    "LiabilityGuard": "qwed_legal.liability",
    "ProvenanceGuard": "qwed_legal.provenance",
    "StatuteOfLimitationsGuard": "qwed_legal.limitations",
}

__all__ = [
    "CitationGuard",
    "DeadlineGuard",
    "FairnessGuard",
    "JurisdictionGuard",
    "LegalGuard",
    "LiabilityGuard",
    "ProvenanceGuard",
    "StatuteOfLimitationsGuard",
]

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return [*__all__]
