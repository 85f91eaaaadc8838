"""Checks of legal deadlines, citations, liability, jurisdiction, limitation, provenance and fairness."""

from typing import TYPE_CHECKING

from qwed.model.lazy_import import lazy_names

if TYPE_CHECKING:
    from qwed_legal.citation import CitationGuard
    from qwed_legal.deadline import DeadlineGuard
    from qwed_legal.fairness import FairnessGuard
    from qwed_legal.jurisdiction import JurisdictionGuard
    from qwed_legal.legal import LegalGuard
    from qwed_legal.liability import LiabilityGuard
    from qwed_legal.limitations import StatuteOfLimitationsGuard
    from qwed_legal.provenance import ProvenanceGuard

# Each guard is imported on first use, and its third-party libraries on its first check.
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

__getattr__, __dir__ = lazy_names(__name__, _HOME)
