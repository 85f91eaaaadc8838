"""Appendix B, tested by machine with more cases."""

from typing import Any

import pytest
from hypothesis import settings
from schemathesis import Case

from tests.spec.sections import spec
from tests.spec.test_openapi import FULL, QUICK, Visitor, each_operation, require_truth, visited, visitor
from tests.support.campaign_table import Figure, campaign

__all__ = ["visited", "visitor"]

LONG = settings(QUICK, max_examples=250, derandomize=False)


@spec("B")
@pytest.mark.drill
@campaign("P4 P6", "random requests against the document")
@pytest.mark.parametrize("who", ["owner", "agent", "nobody"])
@each_operation
def test_whoever_asks_at_length_is_answered_as_the_document_says(
    operation: str, visitor: Visitor, who: str, figure: Figure
) -> None:
    def answered(case: Case[Any]) -> None:
        require_truth(case, visitor.ask(case, who), who)
        figure("requests", 1)

    FULL.ask(operation, LONG, answered)
