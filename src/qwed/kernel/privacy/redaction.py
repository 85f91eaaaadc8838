"""Removes the secrets of an action from messages about it.

A message may contain a secret inside other text, where it cannot be recognised; so the texts found in the action are
replaced as well.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import msgspec

from qwed.guards.secrets import find_secrets, mask
from qwed.guards.text_scan import UNSCANNED, strings_in
from qwed.kernel.analysis.content_scan import name_at, secrets_by_name, texts_of
from qwed.kernel.answer import Answer, Problem, Verification, printable
from qwed.kernel.request import Action

_MIN_SECRET_LENGTH = 4
"""Characters: shorter secrets would match parts of unrelated words."""
_FRAGMENT_LENGTH = 12
"""Characters of a secret that reveal it when a message shortens or splits it."""
_MAX_FRAGMENTS = 1 << 16
_MAX_WORK = 1 << 28
"""Characters of a text times the number of secrets: a fraction of a second."""
_SEPARATOR = "\udfff"
"""An unpaired surrogate, which never occurs in parsed text."""


class Redactor:
    """Removes the secrets of one action from texts and values."""

    def __init__(self, action: Action) -> None:
        secrets: dict[str, str] = {}
        for path, text in (*texts_of(action), *strings_in(action.parameters)):
            secrets |= _secrets_in(path, text)
        # The longest first, so that no remainder of one is left.
        self._secrets = sorted(secrets.items(), key=lambda item: -len(item[0]))

    @cached_property
    def _fragments(self) -> frozenset[str]:
        joined = "\0".join(secret for secret, _kind in self._secrets)[:_MAX_FRAGMENTS]
        windows = (joined[start : start + _FRAGMENT_LENGTH] for start in range(len(joined) - _FRAGMENT_LENGTH + 1))
        return frozenset(window for window in windows if "\0" not in window)

    def text(self, text: str) -> str:
        """Return the text without the secrets and without fragments of them."""
        return mask(self._without_fragments(self.whole(text)))

    def whole(self, text: str) -> str:
        """Return the text with every literal occurrence of a secret replaced."""
        # For very many secrets in a very long text, only the longest: `mask` covers the others by their names.
        for secret, kind in self._secrets[: max(_MAX_WORK // (len(text) + 1), 1)]:
            text = text.replace(secret, f"[secret:{kind}]")
        return text

    def value(self, value: Any) -> Any:
        """Return the masked JSON value of the action without the secrets that masking alone cannot recognise."""
        texts: list[str] = []

        def collect(text: str) -> str:
            texts.append(text)
            return text

        _map_texts(value, collect)
        # One pass over the joined texts: searching for many secrets in many texts would be slow.
        changed = iter(self.whole(_SEPARATOR.join(texts)).split(_SEPARATOR))
        return _map_texts(value, lambda _text: next(changed))

    def found_value(self, value: Any) -> Any:
        """Return a JSON value of what was found in the action without the secrets, however they are spelled there."""
        return _map_texts(value, self._found_text)

    def _found_text(self, text: str) -> str:
        masked = self.text(text)
        forms = (masked.casefold(), unquote(masked).casefold())
        kinds = (kind for secret, kind in self._secrets if any(secret.casefold() in form for form in forms))
        kind = next(kinds, None)
        return masked if kind is None else f"[secret:{kind}]"

    def _without_fragments(self, text: str) -> str:
        starts = [
            start
            for start in range(len(text) - _FRAGMENT_LENGTH + 1)
            if text[start : start + _FRAGMENT_LENGTH] in self._fragments
        ]
        parts: list[str] = []
        end = 0
        for start in starts:
            if start >= end:
                parts += (text[end:start], "[secret:part]")
            end = start + _FRAGMENT_LENGTH
        return "".join((*parts, text[end:])) if starts else text

    def verification(self, verification: Verification) -> Verification:
        """Return the verification without the secrets."""
        effects = tuple({name: self.text(text) for name, text in effect.items()} for effect in verification.effects)
        return msgspec.structs.replace(verification, message=self.text(verification.message), effects=effects)

    def refusal(self, answer: Answer) -> Answer:
        """Return the refusal without the secrets."""
        return answer if answer.error is None else msgspec.structs.replace(answer, error=self._problem(answer.error))

    def _problem(self, problem: Problem) -> Problem:
        return msgspec.structs.replace(
            problem, message=self.text(problem.message), details=self.message_value(problem.details)
        )

    def message_value(self, value: Any) -> Any:
        """Return a JSON value of a message without the secrets."""
        return _map_texts(value, self.text)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(name)): _map_texts(item, change) for name, item in value.items()}
    return [_map_texts(item, change) for item in value] if isinstance(value, list | tuple) else value


def _secrets_in(path: str, text: str) -> dict[str, str]:
    kinds = {
        text[finding.start : finding.end]: finding.kind for finding in find_secrets(text) if finding.kind != UNSCANNED
    }
    if any(finding.kind != UNSCANNED for finding in secrets_by_name(path, text)):
        kinds[text] = mask(name_at(path))
    # As it was sent, and as a message would quote it.
    spellings = ((finding, kind) for secret, kind in kinds.items() for finding in (secret, printable(secret)))
    return {spelling: kind for spelling, kind in spellings if len(spelling) >= _MIN_SECRET_LENGTH}
