"""What is said about an action, without its secrets.

A message may hold a secret beside other text, where nobody would recognise it; so the very texts that were found in the
action are replaced too.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from qwed.guards.secrets import find_secrets, mask
from qwed.guards.text import UNSCANNED, strings_in
from qwed.kernel.answer import Answer, Problem, Verification, printable
from qwed.kernel.judging.content import name_at, texts_of, told_by_name
from qwed.kernel.request import Action

_TELLING = 4
"""Characters: anything shorter stands in half of all texts by accident."""
_PART = 12
"""Characters of a secret that give it away where a message has cut it short or taken it to pieces."""
_MOST_PARTS = 1 << 16
_MOST_READ = 1 << 28
"""Characters of a text, times the secrets looked for in it: a fraction of a second."""
_APART = "\udfff"
"""Half of a pair, which stands in no text that was read."""


class Hiding:
    """Keeps the secrets of one action out of whatever is said about it."""

    def __init__(self, action: Action) -> None:
        found: dict[str, str] = {}
        for path, text in (*texts_of(action), *strings_in(action.parameters)):
            found |= _secrets_in(path, text)
        # The longest first, so that no part of one is left over.
        self._found = sorted(found.items(), key=lambda item: -len(item[0]))

    @cached_property
    def _parts(self) -> frozenset[str]:
        known = "\0".join(secret for secret, _kind in self._found)[:_MOST_PARTS]
        windows = (known[at : at + _PART] for at in range(len(known) - _PART + 1))
        return frozenset(window for window in windows if "\0" not in window)

    def text(self, text: str) -> str:
        """What is said, without them and without parts of them."""
        return mask(self._without_parts(self.whole(text)))

    def whole(self, text: str) -> str:
        """The text without them wherever one stands as it was sent."""
        # The longest of very many in a very long text: the others are masked where their names tell of them.
        for secret, kind in self._found[: max(_MOST_READ // (len(text) + 1), 1)]:
            text = text.replace(secret, f"[secret:{kind}]")
        return text

    def value(self, value: Any) -> Any:
        """The JSON value of the action itself, already masked, without them where nothing else tells of them."""
        texts: list[str] = []

        def noted(text: str) -> str:
            texts.append(text)
            return text

        _in_texts(value, noted)
        # All at once: many secrets in many texts would be looked for one by one.
        changed = iter(self.whole(_APART.join(texts)).split(_APART))
        return _in_texts(value, lambda _text: next(changed))

    def _without_parts(self, text: str) -> str:
        places = [at for at in range(len(text) - _PART + 1) if text[at : at + _PART] in self._parts]
        kept: list[str] = []
        end = 0
        for at in places:
            if at >= end:
                kept += (text[end:at], "[secret:part]")
            end = at + _PART
        return "".join((*kept, text[end:])) if places else text

    def verification(self, said: Verification) -> Verification:
        """What was found, without them."""
        effects = tuple({name: self.text(text) for name, text in effect.items()} for effect in said.effects)
        return msgspec.structs.replace(said, message=self.text(said.message), effects=effects)

    def refusal(self, answer: Answer) -> Answer:
        """The refusal, without them."""
        return answer if answer.error is None else msgspec.structs.replace(answer, error=self._problem(answer.error))

    def _problem(self, said: Problem) -> Problem:
        return msgspec.structs.replace(said, message=self.text(said.message), details=self.said(said.details))

    def said(self, value: Any) -> Any:
        """A JSON value that is said about the action, without them."""
        return _in_texts(value, self.text)


def _in_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(name)): _in_texts(item, change) for name, item in value.items()}
    return [_in_texts(item, change) for item in value] if isinstance(value, list | tuple) else value


def _secrets_in(path: str, text: str) -> dict[str, str]:
    found = {text[each.start : each.end]: each.kind for each in find_secrets(text) if each.kind != UNSCANNED}
    if any(each.kind != UNSCANNED for each in told_by_name(path, text)):
        found[text] = mask(name_at(path))
    # As it was sent, and as a message would repeat it.
    spellings = ((each, kind) for secret, kind in found.items() for each in (secret, printable(secret)))
    return {spelling: kind for spelling, kind in spellings if len(spelling) >= _TELLING}
