"""CitationGuard: is a legal citation well formed, and can its volume, year and court belong together?

It never says that a case exists, or that it says what it is cited for.
"""

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any

from qwed.packs.question import Question
from qwed.packs.result import Result, Standing, Unreadable, answering, standing
from qwed_legal._citation.found import Draft
from qwed_legal._citation.reading import read
from qwed_legal._citation.shapes import SYSTEMS, pointing, shaped
from qwed_legal._citation.tail import left_over
from qwed_legal._citation.text import cleaned

MOST_CITATIONS = 1_000
"""Citations of one batch."""
NO_MORE = "whether the case exists was not looked up"


@dataclass(frozen=True, kw_only=True)
class CitationResult(Result):
    """What was read, and what is wrong with it."""

    citation: str | None = None
    valid: bool = field(init=False)
    """The same as `verified`: the form is right and the parts can belong together."""
    parsed_components: Mapping[str, Any] = field(default_factory=dict)
    issues: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "valid", self.verified)


@dataclass(frozen=True, kw_only=True)
class CitationBatch(Result):
    """A result for each citation in the order they were given, and how many are valid.

    It reads as a list too: `for each in batch`, `batch[0]` and `len(batch)` are about the results.
    """

    results: tuple[CitationResult, ...] = ()
    total: int = 0
    valid: int = 0
    invalid: int = 0
    unknown: int = 0
    """How many of the invalid ones are of no known system."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, key: Any) -> Any:
        return self.results[key] if isinstance(key, int | slice) else super().__getitem__(key)

    def keys(self) -> KeysView[str]:
        """The names of the fields, as of every result."""
        return self._fields().keys()

    def items(self) -> ItemsView[str, Any]:
        """The fields by name, as of every result."""
        return self._fields().items()

    def values(self) -> ValuesView[Any]:
        """What the fields hold, as of every result."""
        return self._fields().values()

    def _fields(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


class CitationGuard:
    """Checks the form and the plausibility of citations of cases and laws."""

    def __init__(self, clock: Callable[[], date] | None = None) -> None:
        self._today = clock or (lambda: datetime.now(UTC).date())

    @answering(CitationResult)
    def verify(self, citation: Any) -> CitationResult:
        """Whether the citation is well formed and plausible."""
        text = cleaned(citation)
        draft = read(text, self._today())
        if not draft.cores:
            return _unread(text)
        if draft.end < len(text):
            draft.wrong(left_over(text, draft.end))
        return _judged(text, draft)

    @answering(CitationBatch)
    def verify_batch(self, citations: Any) -> CitationBatch:
        """Each citation for itself, and how many are valid; verified where all are."""
        if isinstance(citations, str | bytes | Mapping) or not isinstance(citations, Iterable):
            raise Unreadable("`citations` must be a list of texts")
        listed = list(islice(citations, MOST_CITATIONS + 1))
        if not listed or len(listed) > MOST_CITATIONS:
            raise Unreadable(f"`citations` must be a list of 1 to {MOST_CITATIONS} texts")
        return _gathered(tuple(map(self.verify, listed)))

    def find(self, text: Any) -> CitationBatch:
        """The citations in a running text, each with its result; what is only shaped like one is among them."""
        return _found(self, text)


def _unread(text: str) -> CitationResult:
    if pointing(text):
        raise Unreadable("it points to a citation that stands elsewhere (`id.`, `supra`): write that one", SYSTEMS)
    issue = shaped(text)
    if issue is None:
        raise Unreadable("it is no citation of a system that is known: known are " + "; ".join(SYSTEMS), SYSTEMS)
    return CitationResult(
        status=Standing.FAILED,
        message=f"the citation is not valid: {issue}; {NO_MORE}",
        rule="a citation names a reporter, court or code that is known (reporters-db, courts-db, The Bluebook, OSCOLA)",
        by_hand=("look the name up in the table of reporters, courts and codes", issue),
        citation=text,
        parsed_components={"kind": "unknown"},
        issues=[issue],
    )


def _judged(text: str, draft: Draft) -> CitationResult:
    issues = draft.issues
    found = (
        f"the citation is not valid: {'; '.join(issues)}"
        if issues
        else f"the form is right and its parts agree: `{text[:200]}`"
    )
    rules = dict.fromkeys(core.rule for core in draft.cores)
    return CitationResult(
        status=standing(not issues),
        message=f"{found}; {NO_MORE}",
        rule="; ".join(rules),
        by_hand=(*(step for core in draft.cores for step in core.steps), *(issues or ("nothing contradicts that",))),
        citation=text,
        parsed_components=_plain(draft.parts),
        issues=issues,
    )


def _plain(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value is not None}


def _gathered(results: tuple[CitationResult, ...]) -> CitationBatch:
    valid = sum(each.valid for each in results)
    open_ = sum(each.status is Standing.UNVERIFIABLE for each in results)
    failed = len(results) - valid - open_
    status = Standing.FAILED if failed else Standing.UNVERIFIABLE if open_ else Standing.VERIFIED
    return CitationBatch(
        status=status,
        message=f"{valid} of {len(results)} citations are well formed and plausible; {NO_MORE}",
        rule="a batch is valid where each of its citations is",
        by_hand=tuple(f"{number}: {each.message}" for number, each in enumerate(results, 1)),
        results=results,
        total=len(results),
        valid=valid,
        invalid=len(results) - valid,
        unknown=open_,
    )


def _found(guard: CitationGuard, text: Any) -> CitationBatch:
    from qwed_legal._citation.finding import find

    try:
        found = find(text)
    except Unreadable as wrong:
        return CitationBatch.unverifiable(str(wrong), wrong.known)
    if not found:
        return CitationBatch.unverifiable("there is nothing in the text that is shaped like a citation")
    if len(found) > MOST_CITATIONS:
        return CitationBatch.unverifiable(f"the text has more than {MOST_CITATIONS} citations, cut it")
    return guard.verify_batch(found)


QUESTIONS: tuple[Question, ...] = (
    Question(
        name="citation",
        says="is a legal citation well formed, and can its volume, year and court belong together?",
        ask=lambda citation: CitationGuard().verify(citation),
        required=("citation",),
        text="citation",
    ),
    Question(
        name="citation_batch",
        says="the same for a list of citations",
        ask=lambda citations: CitationGuard().verify_batch(citations),
        required=("citations",),
    ),
)
