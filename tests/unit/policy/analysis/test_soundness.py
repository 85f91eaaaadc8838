"""Soundness of proofs: nothing that was proved is refuted by a call, and nearly every edit is decided."""

import pytest

from tests.support.campaign_table import Figure, campaign
from tests.support.policy_campaign import TriedEdit, try_edits
from tests.support.random_policies import EDITS

LEAST_DECIDED = 0.95


def _check(tried: list[TriedEdit]) -> tuple[int, int]:
    wrong = [text for edit in tried for text in edit.wrong]
    assert not wrong, "\n".join(wrong)
    questions, undecided = 3 * len(tried), [text for edit in tried for text in edit.undecided]
    assert len(undecided) <= (1 - LEAST_DECIDED) * questions, "\n".join(undecided)
    return questions, len(undecided)


def test_no_call_refutes_what_was_proved_of_an_edit() -> None:
    _check(try_edits(range(2 * len(EDITS)), rules=8, calls=150))


@pytest.mark.drill
@campaign("P8", "policy edits, proved and tried by brute force")
@pytest.mark.parametrize("first", range(0, 200, 25))
def test_no_call_refutes_what_was_proved_of_200_edits(first: int, figure: Figure) -> None:
    tried = try_edits(range(first, first + 25), rules=20, calls=3_000)
    questions, undecided = _check(tried)
    figure("edits", len(tried))
    figure("questions", questions)
    figure("not proven", undecided)
    figure("edits with a call that changes", sum(bool(edit.seen) for edit in tried))


@pytest.mark.drill
@campaign("P8", "policy edits of 200 rules, proved and tried by brute force")
@pytest.mark.parametrize("first", range(0, 52, 13))
def test_no_call_refutes_what_was_proved_of_edits_of_200_rules(first: int, figure: Figure) -> None:
    tried = try_edits(range(1_000 + first, 1_013 + first), rules=200, calls=1_000)
    questions, undecided = _check(tried)
    figure("edits", len(tried))
    figure("questions", questions)
    figure("not proven", undecided)
