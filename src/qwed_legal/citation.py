"""CitationGuard: check that a legal citation is well formed and that its volume, year and court are consistent.

It does not check that a case exists or supports what it is cited for.
"""

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any

from qwed.packs.check import PackCheck
from qwed.packs.result import CheckStatus, Result, UnreadableInputError, status_of, unverifiable_on_error
from qwed_legal._citation.citation_types import CitationParse
from qwed_legal._citation.fallback_patterns import SYSTEMS, explain_unknown, is_back_reference
from qwed_legal._citation.parenthetical import describe_leftover
from qwed_legal._citation.parser import parse_citation
from qwed_legal._citation.text import clean_citation

MAX_CITATIONS = 1_000
"""Maximum number of citations in one batch."""
EXISTENCE_NOT_CHECKED = "whether the case exists was not looked up"


@dataclass(frozen=True, kw_only=True)
class CitationResult(Result):
    """Parsed components of a citation and the issues found in it."""

    citation: str | None = None
    valid: bool = field(init=False)
    """Same as `verified`: the form is right and the parts are consistent."""
    parsed_components: Mapping[str, Any] = field(default_factory=dict)
    issues: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "valid", self.verified)


@dataclass(frozen=True, kw_only=True)
class CitationBatch(Result):
    """Results of several citations in input order, with counts.

    The batch is also a sequence of its results: it supports iteration, `batch[0]` and `len(batch)`.
    """

    results: tuple[CitationResult, ...] = ()
    total: int = 0
    valid: int = 0
    invalid: int = 0
    unknown: int = 0
    """Number of invalid citations that belong to no known system."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, key: Any) -> Any:
        return self.results[key] if isinstance(key, int | slice) else super().__getitem__(key)

    def keys(self) -> KeysView[str]:
        """Return the field names, as every result does."""
        return self._fields().keys()

    def items(self) -> ItemsView[str, Any]:
        """Return the fields by name, as every result does."""
        return self._fields().items()

    def values(self) -> ValuesView[Any]:
        """Return the field values, as every result does."""
        return self._fields().values()

    def _fields(self) -> dict[str, Any]:
        return {member.name: getattr(self, member.name) for member in fields(self)}


class CitationGuard:
    """Guard for the form and the plausibility of citations of cases and laws."""

    def __init__(self, clock: Callable[[], date] | None = None) -> None:
        self._today = clock or (lambda: datetime.now(UTC).date())

    @unverifiable_on_error(CitationResult)
    def verify(self, citation: Any) -> CitationResult:
        """Verify that the citation is well formed and plausible."""
        text = clean_citation(citation)
        draft = parse_citation(text, self._today())
        if not draft.cores:
            return _unparsed_result(text)
        if draft.end < len(text):
            draft.add_issue(describe_leftover(text, draft.end))
        return _parsed_result(text, draft)

    @unverifiable_on_error(CitationBatch)
    def verify_batch(self, citations: Any) -> CitationBatch:
        """Verify each citation and count the valid ones; the batch is verified if all are."""
        if isinstance(citations, str | bytes | Mapping) or not isinstance(citations, Iterable):
            raise UnreadableInputError("`citations` must be a list of texts")
        items = list(islice(citations, MAX_CITATIONS + 1))
        if not items or len(items) > MAX_CITATIONS:
            raise UnreadableInputError(f"`citations` must be a list of 1 to {MAX_CITATIONS} texts")
        return _batch_result(tuple(map(self.verify, items)))

    def find(self, text: Any) -> CitationBatch:
        """Find the citations in a running text and verify each; text that only resembles a citation is included."""
        return _find_in_text(self, text)


def _unparsed_result(text: str) -> CitationResult:
    if is_back_reference(text):
        raise UnreadableInputError("it refers to another citation (`id.`, `supra`): write that one", SYSTEMS)
    issue = explain_unknown(text)
    if issue is None:
        raise UnreadableInputError("it is not a citation of a known system: known are " + "; ".join(SYSTEMS), SYSTEMS)
    return CitationResult(
        status=CheckStatus.FAILED,
        message=f"the citation is not valid: {issue}; {EXISTENCE_NOT_CHECKED}",
        rule="a citation names a reporter, court or code that is known (reporters-db, courts-db, The Bluebook, OSCOLA)",
        by_hand=("look the name up in the table of reporters, courts and codes", issue),
        citation=text,
        parsed_components={"kind": "unknown"},
        issues=[issue],
    )


def _parsed_result(text: str, draft: CitationParse) -> CitationResult:
    issues = draft.issues
    summary = (
        f"the citation is not valid: {'; '.join(issues)}"
        if issues
        else f"the form is right and its parts agree: `{text[:200]}`"
    )
    rules = dict.fromkeys(core.rule for core in draft.cores)
    return CitationResult(
        status=status_of(not issues),
        message=f"{summary}; {EXISTENCE_NOT_CHECKED}",
        rule="; ".join(rules),
        by_hand=(*(step for core in draft.cores for step in core.steps), *(issues or ("nothing contradicts that",))),
        citation=text,
        parsed_components=_without_none(draft.parts),
        issues=issues,
    )


def _without_none(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value is not None}


def _batch_result(results: tuple[CitationResult, ...]) -> CitationBatch:
    valid = sum(result.valid for result in results)
    unknown = sum(result.status is CheckStatus.UNVERIFIABLE for result in results)
    failed = len(results) - valid - unknown
    status = CheckStatus.FAILED if failed else CheckStatus.UNVERIFIABLE if unknown else CheckStatus.VERIFIED
    return CitationBatch(
        status=status,
        message=f"{valid} of {len(results)} citations are well formed and plausible; {EXISTENCE_NOT_CHECKED}",
        rule="a batch is valid where each of its citations is",
        by_hand=tuple(f"{number}: {result.message}" for number, result in enumerate(results, 1)),
        results=results,
        total=len(results),
        valid=valid,
        invalid=len(results) - valid,
        unknown=unknown,
    )


def _find_in_text(guard: CitationGuard, text: Any) -> CitationBatch:
    from qwed_legal._citation.extract import find_citations

    try:
        citations = find_citations(text)
    except UnreadableInputError as error:
        return CitationBatch.unverifiable(str(error), error.known)
    if not citations:
        return CitationBatch.unverifiable("no citation found in the text")
    if len(citations) > MAX_CITATIONS:
        return CitationBatch.unverifiable(f"the text has more than {MAX_CITATIONS} citations, cut it")
    return guard.verify_batch(citations)


CHECKS: tuple[PackCheck, ...] = (
    PackCheck(
        name="citation",
        says="is a legal citation well formed, and can its volume, year and court belong together?",
        ask=lambda citation: CitationGuard().verify(citation),
        required=("citation",),
        text="citation",
    ),
    PackCheck(
        name="citation_batch",
        says="the same for a list of citations",
        ask=lambda citations: CitationGuard().verify_batch(citations),
        required=("citations",),
    ),
)
