"""FairnessGuard: check that a decision stays the same when names and pronouns in its prompt are swapped."""

import inspect
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from qwed.packs.plural import pluralize
from qwed.packs.result import Result, UnreadableInputError, status_of, unverifiable_on_error
from qwed.packs.value_parsing import number_of, text_of

_MAX_PROMPT = 100_000
_MAX_DECISION = 10_000
_MAX_WORD = 100
_MAX_SWAPS = 100
_MAX_SECONDS = 600
_EDGES = " \t\r\n.,;:!?\"'`*_()[]{}"
_RULE = (
    "a decision is the same for two prompts that differ in the swapped words alone (counterfactual fairness); one "
    "pair that agrees is no proof that the model is fair, one that differs shows that it is not"
)
_SWAP_FORMAT = '`swap` must be an object such as `{"John": "Jane", "he": "she"}` or a list of such pairs'

LlmClient = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class FairnessResult(Result):
    """Decisions for the original and the swapped prompt."""

    original_decision: str | None = None
    counterfactual_decision: str | None = None
    counterfactual_prompt: str | None = None
    words_swapped: int | None = None


class FairnessGuard:
    """Guard that calls a model again with words swapped; the model is any callable from text to text."""

    def __init__(self, llm_client: LlmClient, *, timeout_seconds: float = 60) -> None:
        self.llm_client = llm_client
        self.timeout_seconds = timeout_seconds

    @unverifiable_on_error(FairnessResult)
    def verify_decision_fairness(self, prompt: Any, decision: Any, swap: Any) -> FairnessResult:
        """Verify that the model decides the same for the prompt with the words swapped."""
        text = text_of("prompt", prompt, _MAX_PROMPT)
        original = text_of("decision", decision, _MAX_DECISION)
        swapped = WordSwap(swap)
        swapped_prompt, count = swapped(text)
        if not count or swapped_prompt == text:
            raise UnreadableInputError("`swap` changes nothing in the prompt: name words that occur in it")
        answer = self._call_client(swapped_prompt)
        same = _normalise(answer) == _normalise(swapped(original)[0])
        return FairnessResult(
            status=status_of(same),
            message=_message(same, count),
            rule=_RULE,
            by_hand=(
                f"swap {', '.join(f'`{old}` for `{new}`' for old, new in swapped.pairs)}: "
                f"{pluralize(count, 'word')} of the prompt",
                f"the decision for the prompt, its words swapped too, is `{swapped(original)[0][:200]}`",
                f"the decision for the swapped prompt is `{answer[:200]}`: {'the same' if same else 'another'}",
            ),
            original_decision=original,
            counterfactual_decision=answer,
            counterfactual_prompt=swapped_prompt,
            words_swapped=count,
        )

    def _call_client(self, prompt: str) -> str:
        if not callable(self.llm_client):
            raise UnreadableInputError("`llm_client` must be a callable that answers a text with a text")
        seconds = number_of("timeout_seconds", self.timeout_seconds)
        if not 0 < seconds <= _MAX_SECONDS:
            raise UnreadableInputError(f"`timeout_seconds` must be more than 0 and at most {_MAX_SECONDS}")
        call = ModelCall(self.llm_client, prompt)
        call.start()
        call.join(float(seconds))
        return call.answer()


class WordSwap:
    """Swap of whole words, all at once, each in the case of its occurrence."""

    def __init__(self, pairs: Any) -> None:
        self.pairs = _parse_pairs(pairs)
        self._by_word = {old.casefold(): (old, new) for old, new in self.pairs}
        if len(self._by_word) < len(self.pairs):
            raise UnreadableInputError("`swap` names a word twice")
        longest_first = sorted((re.escape(old) for old, _ in self.pairs), key=len, reverse=True)
        self._words = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)", re.IGNORECASE)

    def __call__(self, text: str) -> tuple[str, int]:
        """Return the text with the words swapped, and the number of swaps."""
        return self._words.subn(self._other, text)

    def _other(self, match: re.Match[str]) -> str:
        word = match[0]
        old, new = self._by_word.get(word.casefold(), (word, word))
        if word == old:
            return new
        if word.isupper() and len(word) > 1:
            return new.upper()
        return new[:1].upper() + new[1:] if word[:1].isupper() else new.lower()


class ModelCall(threading.Thread):
    """One call to a model on its own thread; the model may answer, raise or hang."""

    def __init__(self, client: LlmClient, prompt: str) -> None:
        # A model that hangs must not prevent the process from exiting.
        super().__init__(name="fairness", daemon=True)
        self._client, self._prompt = client, prompt
        self._answer: Any = None
        self._capture = ExceptionCapture()

    def run(self) -> None:
        with self._capture:
            answer: Any = self._client(self._prompt)
            if inspect.iscoroutine(answer):
                answer.close()
            self._answer = answer

    def answer(self) -> str:
        """Return the answer. Raise UnreadableInputError if the client raised, timed out or returned no text."""
        if self.is_alive():
            raise UnreadableInputError("the client did not answer in time, so nothing is known of its decision")
        if self._capture.error is not None:
            raise UnreadableInputError(
                f"the client raised {type(self._capture.error).__name__}, so nothing is known of its decision"
            )
        if not isinstance(self._answer, str) or not self._answer.strip():
            raise UnreadableInputError("the client answered no text, so nothing is known of its decision")
        return text_of("the answer of the client", self._answer, _MAX_DECISION)


class ExceptionCapture:
    """Context manager that captures any exception of a client, including BaseException."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        self.error = error
        return True


def _parse_pairs(pairs: Any) -> tuple[tuple[str, str], ...]:
    rows = tuple(pairs.items()) if isinstance(pairs, Mapping) else pairs
    if not isinstance(rows, list | tuple) or not 1 <= len(rows) <= _MAX_SWAPS:
        raise UnreadableInputError(f"{_SWAP_FORMAT}, with 1 to {_MAX_SWAPS} of them")
    return tuple(_parse_pair(row) for row in rows)


def _parse_pair(row: Any) -> tuple[str, str]:
    if not isinstance(row, list | tuple) or len(row) != 2:
        raise UnreadableInputError(_SWAP_FORMAT)
    old, new = (text_of("swap", word, _MAX_WORD).strip() for word in row)
    return old, new


def _normalise(decision: str) -> str:
    return " ".join(decision.casefold().split()).strip(_EDGES)


def _message(same: bool, count: int) -> str:
    words = pluralize(count, "word")
    if same:
        return f"the decision stays the same with {words} swapped; one pair is no proof of fairness in general"
    return f"the decision changes when {words} of the prompt {'is' if count == 1 else 'are'} swapped and nothing else"
