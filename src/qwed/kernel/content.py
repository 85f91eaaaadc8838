"""What the parameters of a call carry: secrets, personal data, privileged targets."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed.guards.pii import find_pii
from qwed.guards.secrets import find_secrets, mask
from qwed.guards.text import UNSCANNED, strings_in
from qwed.kernel.request import Action

RECIPIENTS = frozenset({"to", "cc", "bcc", "from", "sender", "recipient", "recipients", "reply_to", "email"})
"""Where an address is where it belongs: sending a letter to someone does not leak who they are."""
PRIVILEGED = ("admin", "root", "superuser", "production", "sudo")


class Content(NamedTuple):
    """What was found in the text of a call."""

    has_pii: bool = False
    leaks_pii: bool = False
    secrets: tuple[str, ...] = ()
    privileged: bool = False
    complete: bool = True
    """False where there was more text than we read: then nothing is said to be clean."""


NOTHING_SAID = Content()


def read_content(action: Action) -> Content:
    """Look at every string of the action."""
    texts = [("", text) for text in (action.query, action.code, action.target) if text]
    strings = strings_in(action.parameters) if action.parameters else None
    if strings is not None:
        texts.extend(strings)
    if not texts:
        return NOTHING_SAID
    pii_at = {path: {finding.kind for finding in found} for path, text in texts if (found := find_pii(text))}
    secrets = {finding.kind for _path, text in texts for finding in find_secrets(text)}
    secrets.update(_named_secrets(action.parameters))
    unread = UNSCANNED in secrets or any(UNSCANNED in kinds for kinds in pii_at.values())
    return Content(
        has_pii=bool(pii_at),
        leaks_pii=not all(path.partition(".")[0].lower() in RECIPIENTS for path in pii_at),
        secrets=tuple(sorted(secrets - {UNSCANNED})),
        privileged=any(word in text.lower() for _path, text in texts for word in PRIVILEGED),
        complete=not unread and (strings is None or strings.complete),
    )


def _named_secrets(parameters: Mapping[str, Any] | None) -> set[str]:
    """A value that is only telling beside its name: `{"password": "..."}` reads like an assignment."""
    pairs = [(key, value) for key, value in (parameters or {}).items() if isinstance(value, str)]
    return {finding.kind for key, value in pairs for finding in find_secrets(f'{key} = "{value}"')}


def masked(value: Any, name: str = "") -> Any:
    """The JSON value with every secret in it replaced by what kind of secret it was."""
    if isinstance(value, str):
        named = find_secrets(f'{name} = "{value}"') if name else ()
        return f"[secret:{named[0].kind}]" if named and not find_secrets(value) else mask(value)
    if isinstance(value, Mapping):
        return {key: masked(item, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, name) for item in value]
    return value
