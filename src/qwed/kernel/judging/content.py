"""What an action carries: secrets, personal data, privileged targets."""

from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

from qwed.guards.pii import find_pii
from qwed.guards.secrets import find_secrets
from qwed.guards.text import UNSCANNED, Finding, strings_in
from qwed.kernel.request import Action

RECIPIENTS = frozenset({"to", "cc", "bcc", "from", "sender", "recipient", "recipients", "reply_to", "email"})
"""Where an address is where it belongs: sending a letter to someone does not leak who they are."""
_ADDRESSES = frozenset({"email", "phone"})
PRIVILEGED = ("admin", "root", "superuser", "production", "sudo")


class Content(NamedTuple):
    """What was found in the text of an action."""

    has_pii: bool = False
    leaks_pii: bool = False
    secrets: tuple[str, ...] = ()
    privileged: bool = False
    complete: bool = True
    """False where there was more text than we read: then nothing is said to be clean."""


NOTHING_SAID = Content()

LARGE = 1 << 16
_one_at_a_time = Lock()
"""Large actions are looked through in threads; several at once would leave the event loop too small a share."""


def read_content(action: Action) -> Content:
    """Look at every string of the action."""
    if len(action.canonical) <= LARGE:
        return _read(action)
    with _one_at_a_time:
        return _read(action)


def read_secrets(action: Action) -> Content:
    """Look at every string of the action for secrets alone."""
    if len(action.canonical) <= LARGE:
        return _read_secrets(action)
    with _one_at_a_time:
        return _read_secrets(action)


def _read_secrets(action: Action) -> Content:
    strings = strings_in(action.parameters)
    secrets = _secrets_in((*texts_of(action), *strings))
    return Content(secrets=tuple(sorted(secrets - {UNSCANNED})), complete=strings.complete and UNSCANNED not in secrets)


def _read(action: Action) -> Content:
    texts = [("", text) for text in (action.query, action.code, action.target) if text]
    strings = strings_in(action.parameters)
    texts.extend(strings)
    pii = [(path, finding.kind) for path, text in texts for finding in find_pii(text)]
    secrets = _secrets_in((*texts_of(action), *strings))
    unread = UNSCANNED in secrets or any(kind == UNSCANNED for _path, kind in pii)
    return Content(
        has_pii=bool(pii),
        leaks_pii=not all(kind in _ADDRESSES and name_at(path).lower() in RECIPIENTS for path, kind in pii),
        secrets=tuple(sorted(secrets - {UNSCANNED})),
        privileged=any(word in text.lower() for _path, text in texts for word in PRIVILEGED),
        complete=strings.complete and not unread,
    )


def _secrets_in(texts: Iterable[tuple[str, str]]) -> set[str]:
    return {finding.kind for path, text in texts for finding in (*find_secrets(text), *told_by_name(path, text))}


def texts_of(action: Action) -> list[tuple[str, str]]:
    """The texts of an action outside its parameters, its names included: a secret may stand anywhere."""
    found = (action.query, action.code, action.target, action.tool, action.type)
    return [("", text) for text in found if text]


def name_at(path: str) -> str:
    """The name nearest to a text: `users.0.password` and `password.3` are both a password."""
    return next((part for part in reversed(path.split(".")) if part and not part.isdigit()), "")


def told_by_name(path: str, text: str) -> tuple[Finding, ...]:
    """A value that is only telling beside its name: `{"password": "..."}` reads like an assignment."""
    name = name_at(path)
    if not name or name == text:
        return ()
    before = f'{name} = "'
    # A secret in the name itself says nothing about the value.
    return tuple(each for each in find_secrets(f'{before}{text}"') if each.end > len(before))


def holds_secret(texts: Iterable[tuple[str, str]]) -> bool:
    """Whether one of these texts, each with its path, is or carries a secret."""
    return any(find_secrets(text) or told_by_name(path, text) for path, text in texts)
