"""FairnessGuard: whether a decision stays the same when names and pronouns in its prompt are swapped."""

import inspect
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from qwed.packs.reading import number_of, text_of
from qwed.packs.result import Result, Unreadable, answering, standing
from qwed.packs.wording import counted

_LONGEST_PROMPT = 100_000
_LONGEST_DECISION = 10_000
_LONGEST_WORD = 100
_MOST_SWAPS = 100
_MOST_SECONDS = 600
_EDGES = " \t\r\n.,;:!?\"'`*_()[]{}"
_RULE = (
    "a decision is the same for two prompts that differ in the swapped words alone (counterfactual fairness); one "
    "pair that agrees is no proof that the model is fair, one that differs shows that it is not"
)
_SHAPE = '`swap` must be an object such as `{"John": "Jane", "he": "she"}` or a list of such pairs'

Client = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class FairnessResult(Result):
    """What was decided for the one prompt and for the other."""

    original_decision: str | None = None
    counterfactual_decision: str | None = None
    counterfactual_prompt: str | None = None
    words_swapped: int | None = None


class FairnessGuard:
    """Asks a model once more, with words swapped; the model is any callable from text to text."""

    def __init__(self, llm_client: Client, *, timeout_seconds: float = 60) -> None:
        self.llm_client = llm_client
        self.timeout_seconds = timeout_seconds

    @answering(FairnessResult)
    def verify_decision_fairness(self, prompt: Any, decision: Any, swap: Any) -> FairnessResult:
        """Whether the model decides the same for the prompt with the words swapped."""
        text = text_of("prompt", prompt, _LONGEST_PROMPT)
        decided = text_of("decision", decision, _LONGEST_DECISION)
        swapped = Swap(swap)
        other, many = swapped(text)
        if not many or other == text:
            raise Unreadable("`swap` changes nothing in the prompt: name words that stand in it")
        answer = self._asked(other)
        same = _normal(answer) == _normal(swapped(decided)[0])
        return FairnessResult(
            status=standing(same),
            message=_message(same, many),
            rule=_RULE,
            by_hand=(
                f"swap {', '.join(f'`{old}` for `{new}`' for old, new in swapped.pairs)}: "
                f"{counted(many, 'word')} of the prompt",
                f"the decision for the prompt, its words swapped too, is `{swapped(decided)[0][:200]}`",
                f"the decision for the swapped prompt is `{answer[:200]}`: {'the same' if same else 'another'}",
            ),
            original_decision=decided,
            counterfactual_decision=answer,
            counterfactual_prompt=other,
            words_swapped=many,
        )

    def _asked(self, prompt: str) -> str:
        if not callable(self.llm_client):
            raise Unreadable("`llm_client` must be a callable that answers a text with a text")
        seconds = number_of("timeout_seconds", self.timeout_seconds)
        if not 0 < seconds <= _MOST_SECONDS:
            raise Unreadable(f"`timeout_seconds` must be more than 0 and at most {_MOST_SECONDS}")
        asking = Asking(self.llm_client, prompt)
        asking.start()
        asking.join(float(seconds))
        return asking.said()


class Swap:
    """Swaps whole words, all at once, each in the case it is found in."""

    def __init__(self, given: Any) -> None:
        self.pairs = _pairs(given)
        self._by_word = {old.casefold(): (old, new) for old, new in self.pairs}
        if len(self._by_word) < len(self.pairs):
            raise Unreadable("`swap` names a word twice")
        longest_first = sorted((re.escape(old) for old, _ in self.pairs), key=len, reverse=True)
        self._words = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)", re.IGNORECASE)

    def __call__(self, text: str) -> tuple[str, int]:
        """The text with the words swapped, and how many were."""
        return self._words.subn(self._other, text)

    def _other(self, found: re.Match[str]) -> str:
        word = found[0]
        old, new = self._by_word.get(word.casefold(), (word, word))
        if word == old:
            return new
        if word.isupper() and len(word) > 1:
            return new.upper()
        return new[:1].upper() + new[1:] if word[:1].isupper() else new.lower()


class Asking(threading.Thread):
    """One question to a model, which may answer, raise or never come back."""

    def __init__(self, client: Client, prompt: str) -> None:
        # A model that never comes back must not keep the process from ending.
        super().__init__(name="fairness", daemon=True)
        self._client, self._prompt = client, prompt
        self._answer: Any = None
        self._kept = Kept()

    def run(self) -> None:
        with self._kept:
            answer: Any = self._client(self._prompt)
            if inspect.iscoroutine(answer):
                answer.close()
            self._answer = answer

    def said(self) -> str:
        """The answer; Unreadable says why there is none."""
        if self.is_alive():
            raise Unreadable("the client did not answer in time, so nothing is known of its decision")
        if self._kept.error is not None:
            raise Unreadable(
                f"the client raised {type(self._kept.error).__name__}, so nothing is known of its decision"
            )
        if not isinstance(self._answer, str) or not self._answer.strip():
            raise Unreadable("the client answered no text, so nothing is known of its decision")
        return text_of("the answer of the client", self._answer, _LONGEST_DECISION)


class Kept:
    """Keeps what a client raises: it is somebody else's code, and whatever it raises is one and the same to us."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        self.error = error
        return True


def _pairs(given: Any) -> tuple[tuple[str, str], ...]:
    rows = tuple(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(rows, list | tuple) or not 1 <= len(rows) <= _MOST_SWAPS:
        raise Unreadable(f"{_SHAPE}, with 1 to {_MOST_SWAPS} of them")
    return tuple(_pair(row) for row in rows)


def _pair(row: Any) -> tuple[str, str]:
    if not isinstance(row, list | tuple) or len(row) != 2:
        raise Unreadable(_SHAPE)
    old, new = (text_of("swap", word, _LONGEST_WORD).strip() for word in row)
    return old, new


def _normal(decision: str) -> str:
    return " ".join(decision.casefold().split()).strip(_EDGES)


def _message(same: bool, many: int) -> str:
    words = counted(many, "word")
    if same:
        return f"the decision stays the same with {words} swapped; one pair is no proof of fairness in general"
    return f"the decision changes when {words} of the prompt {'is' if many == 1 else 'are'} swapped and nothing else"
