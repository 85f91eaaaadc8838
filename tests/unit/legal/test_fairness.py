"""INTERFACES 8: FairnessGuard, the same decision for another name."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from qwed.packs.result import Standing
from qwed_legal import FairnessGuard
from tests.support.tables import each

PROMPT = "John Smith asks for a loan. He earns 50,000 and JOHN has no debts; his bank knows him."
SWAP = {"John": "Jane", "he": "she", "his": "her", "him": "her"}


def answers(text: object) -> Callable[[str], Any]:
    return lambda _prompt: text


def test_the_prompt_is_swapped_word_by_word_and_in_its_case():
    asked: list[str] = []
    guard = FairnessGuard(lambda prompt: asked.append(prompt) or "Approved")  # type: ignore[func-returns-value]
    result = guard.verify_decision_fairness(PROMPT, "approved.", SWAP)
    assert asked == ["Jane Smith asks for a loan. She earns 50,000 and JANE has no debts; her bank knows her."]
    assert (result.status, result.words_swapped) == (Standing.VERIFIED, 5)
    assert "no proof of fairness" in result.message


def test_another_decision_for_another_name_fails():
    result = FairnessGuard(lambda prompt: "Denied" if "Jane" in prompt else "Approved").verify_decision_fairness(
        PROMPT, "Approved", SWAP
    )
    assert (result.status, result.counterfactual_decision) == (Standing.FAILED, "Denied")
    assert result.by_hand[-1] == "the decision for the swapped prompt is `Denied`: another"


@each(
    ("swap", "prompt", "expected"),
    [
        ({"he": "she"}, "The chef said he heard them", "The chef said she heard them"),
        ({"he": "she", "she": "he"}, "He met her; she met him", "She met her; he met him"),
        ([["Mr", "Ms"], ("John Smith", "Jane Doe"), ("John", "Ann")], "Mr John Smith and John", "Ms Jane Doe and Ann"),
        ({"John": "Jane"}, "John's, (john) JOHN-1", "Jane's, (jane) JANE-1"),
        ({"a.b": "c"}, "a.b axb A.B", "c axb C"),
        ({"Müller": "Öztürk"}, "Herr Müller, MÜLLER", "Herr Öztürk, ÖZTÜRK"),
        ({"I": "we"}, "I think it is I", "we think it is we"),
    ],
)
def test_words_are_swapped_whole_and_at_once(swap, prompt, expected):
    result = FairnessGuard(answers("yes")).verify_decision_fairness(prompt, "yes", swap)
    assert result.counterfactual_prompt == expected


@each(
    ("decision", "answer", "same"),
    [
        ("Approve", "approve", True),
        ("Approve.", " APPROVE ", True),
        ("**Approve**", "Approve", True),
        ("Approve John's loan", "Approve Jane's loan", True),
        ("He qualifies", "She  qualifies.", True),
        ("Approve", "Approve with conditions", False),
        ("Approve", "Do not approve", False),
        ("Approve John's loan", "Approve John's loan", False),
        ("Yes", "No", False),
        ("7 %", "8 %", False),
        ("10", "100", False),
    ],
)
def test_decisions_are_compared_without_case_spacing_and_marks(decision, answer, same):
    assert FairnessGuard(answers(answer)).verify_decision_fairness(PROMPT, decision, SWAP).verified is same


def raising(_prompt: str) -> str:
    raise RuntimeError("the model is away")


def leaving(_prompt: str) -> str:
    raise SystemExit(1)


async def later(_prompt: str) -> str:
    await asyncio.sleep(0)
    return "Approved"


@each(
    ("client", "says"),
    [
        (raising, "raised RuntimeError"),
        (leaving, "raised SystemExit"),
        (later, "answered no text"),
        (answers(None), "answered no text"),
        (answers(""), "answered no text"),
        (answers("  "), "answered no text"),
        (answers(True), "answered no text"),
        (answers(b"Approved"), "answered no text"),
        (answers({"decision": "Approved"}), "answered no text"),
        (answers("x" * 10_001), "longer than"),
        (lambda: "Approved", "raised TypeError"),
        (None, "must be a callable"),
        ("Approved", "must be a callable"),
    ],
)
def test_a_client_that_does_not_answer_verifies_nothing(client, says):
    result = FairnessGuard(client).verify_decision_fairness(PROMPT, "Approved", SWAP)
    assert result.status is Standing.UNVERIFIABLE
    assert says in result.message


def test_a_client_that_is_too_slow_verifies_nothing():
    never = threading.Event()

    def slow(_prompt: str) -> str:
        never.wait()
        return "Approved"

    result = FairnessGuard(slow, timeout_seconds=0.01).verify_decision_fairness(PROMPT, "Approved", SWAP)
    never.set()
    assert (result.status, result.verified) == (Standing.UNVERIFIABLE, False)
    assert "in time" in result.message


@each(
    ("prompt", "decision", "swap"),
    [
        (PROMPT, "Approved", {"Peter": "Petra"}),
        (PROMPT, "Approved", {"John": "John"}),
        (PROMPT, "Approved", {}),
        (PROMPT, "Approved", []),
        (PROMPT, "Approved", None),
        (PROMPT, "Approved", "John"),
        (PROMPT, "Approved", ["ab", "cd"]),
        (PROMPT, "Approved", [["John"]]),
        (PROMPT, "Approved", {"John": ""}),
        (PROMPT, "Approved", {"": "Jane"}),
        (PROMPT, "Approved", {"John": 5}),
        (PROMPT, "Approved", {"John": "Jane", "john": "Ann"}),
        (PROMPT, "Approved", {f"n{each}": "x" for each in range(101)}),
        (PROMPT, "Approved", {"x" * 101: "y"}),
        ("", "Approved", SWAP),
        (None, "Approved", SWAP),
        ("John " * 30_000, "Approved", SWAP),
        (PROMPT, "", SWAP),
        (PROMPT, True, SWAP),
        (PROMPT, "x" * 10_001, SWAP),
    ],
)
def test_what_cannot_be_swapped_is_unverifiable(prompt, decision, swap):
    asked: list[str] = []
    guard = FairnessGuard(lambda text: asked.append(text) or "Approved")  # type: ignore[func-returns-value]
    assert guard.verify_decision_fairness(prompt, decision, swap).status is Standing.UNVERIFIABLE
    assert asked == []


@pytest.mark.parametrize("seconds", [0, -1, 601, "soon", None, True])
def test_a_timeout_is_a_number_of_seconds(seconds):
    guard = FairnessGuard(answers("Approved"), timeout_seconds=seconds)
    assert guard.verify_decision_fairness(PROMPT, "Approved", SWAP).status is Standing.UNVERIFIABLE


def test_a_hundred_words_are_swapped_in_the_longest_prompt():
    swap = {f"name{each}": f"other{each}" for each in range(100)}
    prompt = " ".join(f"name{each % 100}" for each in range(12_000))
    result = FairnessGuard(answers("yes")).verify_decision_fairness(prompt, "yes", swap)
    assert (result.verified, result.words_swapped) == (True, 12_000)
