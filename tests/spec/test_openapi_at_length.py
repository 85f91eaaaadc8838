"""Appendix B once more, at length. A file of its own: making its cases takes seconds even where none of them is run."""

import pytest
from hypothesis import settings
from schemathesis import Case

from tests.spec.sections import spec
from tests.spec.test_openapi import FULL, QUICK, Visitor, require_truth, visited, visitor
from tests.support.figures import Figure, campaign

__all__ = ["visited", "visitor"]

LONG = settings(QUICK, max_examples=250, derandomize=False)


@spec("B")
@pytest.mark.drill
@campaign("P4 P6", "random requests against the document")
@pytest.mark.parametrize("who", ["owner", "agent", "nobody"])
@FULL.parametrize()
@LONG
def test_whoever_asks_at_length_is_answered_as_the_document_says(
    case: Case, visitor: Visitor, who: str, figure: Figure
) -> None:
    require_truth(case, visitor.ask(case, who), who)
    figure("requests", 1)
