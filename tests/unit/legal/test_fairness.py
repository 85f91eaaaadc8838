"""FairnessGuard: the same decision for another name (INTERFACES 8)."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from qwed.packs.result import CheckStatus
from qwed_legal import FairnessGuard
from tests.support.case_tables import each

PROMPT = "John Smith asks for a loan. He earns 50,000 and JOHN has no debts; his bank knows him."
SWAP = {"John": "Jane", "he": "she", "his": "her", "him": "her"}


def client_answering(text: object) -> Callable[[str], Any]:
    return lambda _prompt: text


def test_the_prompt_is_swapped_word_by_word_and_in_its_case():
    prompts: list[str] = []
    guard = FairnessGuard(lambda prompt: prompts.append(prompt) or "Approved")  # type: ignore[func-returns-value]
    result = guard.verify_decision_fairness(PROMPT, "approved.", SWAP)
    assert prompts == ["Jane Smith asks for a loan. She earns 50,000 and JANE has no debts; her bank knows her."]
    assert (result.status, result.words_swapped) == (CheckStatus.VERIFIED, 5)
    assert "no proof of fairness" in result.message


def test_another_decision_for_another_name_fails():
    result = FairnessGuard(lambda prompt: "Denied" if "Jane" in prompt else "Approved").verify_decision_fairness(
        PROMPT, "Approved", SWAP
    )
    assert (result.status, result.counterfactual_decision) == (CheckStatus.FAILED, "Denied")
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
    result = FairnessGuard(client_answering("yes")).verify_decision_fairness(prompt, "yes", swap)
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
    assert FairnessGuard(client_answering(answer)).verify_decision_fairness(PROMPT, decision, SWAP).verified is same


def raising_client(_prompt: str) -> str:
    raise RuntimeError("the model is away")


def exiting_client(_prompt: str) -> str:
    raise SystemExit(1)


async def later(_prompt: str) -> str:
    await asyncio.sleep(0)
    return "Approved"


@each(
    ("client", "says"),
    [
        (raising_client, "raised RuntimeError"),
        (exiting_client, "raised SystemExit"),
        (later, "answered no text"),
        (client_answering(None), "answered no text"),
        (client_answering(""), "answered no text"),
        (client_answering("  "), "answered no text"),
        (client_answering(True), "answered no text"),
        (client_answering(b"Approved"), "answered no text"),
        (client_answering({"decision": "Approved"}), "answered no text"),
        (client_answering("x" * 10_001), "longer than"),
        (lambda: "Approved", "raised TypeError"),
        (None, "must be a callable"),
        ("Approved", "must be a callable"),
    ],
)
def test_a_client_that_does_not_answer_verifies_nothing(client, says):
    result = FairnessGuard(client).verify_decision_fairness(PROMPT, "Approved", SWAP)
    assert result.status is CheckStatus.UNVERIFIABLE
    assert says in result.message


def test_a_client_that_is_too_slow_verifies_nothing():
    never = threading.Event()

    def slow(_prompt: str) -> str:
        never.wait()
        return "Approved"

    result = FairnessGuard(slow, timeout_seconds=0.01).verify_decision_fairness(PROMPT, "Approved", SWAP)
    never.set()
    assert (result.status, result.verified) == (CheckStatus.UNVERIFIABLE, False)
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
        (PROMPT, "Approved", {f"n{number}": "x" for number in range(101)}),
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
    prompts: list[str] = []
    guard = FairnessGuard(lambda text: prompts.append(text) or "Approved")  # type: ignore[func-returns-value]
    assert guard.verify_decision_fairness(prompt, decision, swap).status is CheckStatus.UNVERIFIABLE
    assert prompts == []


@pytest.mark.parametrize("seconds", [0, -1, 601, "soon", None, True])
def test_a_timeout_is_a_number_of_seconds(seconds):
    guard = FairnessGuard(client_answering("Approved"), timeout_seconds=seconds)
    assert guard.verify_decision_fairness(PROMPT, "Approved", SWAP).status is CheckStatus.UNVERIFIABLE


def test_a_hundred_words_are_swapped_in_the_longest_prompt():
    swap = {f"name{number}": f"other{number}" for number in range(100)}
    prompt = " ".join(f"name{number % 100}" for number in range(12_000))
    result = FairnessGuard(client_answering("yes")).verify_decision_fairness(prompt, "yes", swap)
    assert (result.verified, result.words_swapped) == (True, 12_000)
