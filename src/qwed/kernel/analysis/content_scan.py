"""Scans an action for secrets, personal data and privileged targets."""

import re
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import NamedTuple

from qwed.guards.pii import find_pii
from qwed.guards.secrets import find_secrets
from qwed.guards.text_scan import NO_STRINGS, UNSCANNED, TextFinding, is_plain, strings_in
from qwed.kernel.request import Action

_RECIPIENTS = frozenset(
    """
    to cc bcc replyto recipient recipients target from sender torecipients ccrecipients bccrecipients toaddresses
    ccaddresses bccaddresses
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Fields with the destination of a message: sending an email to a person does not leak that person's address."""
_PARTS_OF_RECIPIENTS = frozenset({"email", "address", "emailaddress", "phone", "number", "name"})
_CONTENT = frozenset(
    {"body", "content", "text", "html", "attachment", "attachments", "file", "files", "rows", "records"}
)
"""Fields with the content of a message, which may have fields of any name."""
_ADDRESSES = frozenset({"email", "phone"})
_LINK_SIGNS = frozenset("/?=&")
"""Characters of a link and not of an address."""
_MAX_FIELDS = 5
_PLAIN_FIELD = re.compile(r"[\w.-]{1,80}")
_PRIVILEGED = re.compile("admin|root|superuser|production|sudo")


class ContentScan(NamedTuple):
    """Result of scanning the texts of an action."""

    has_pii: bool = False
    pii_fields: tuple[str, ...] = ()
    """Fields with personal data other than the address of a recipient; at most a few are named."""
    secrets: tuple[str, ...] = ()
    privileged: bool = False
    complete: bool = True
    """False if there was more text than was scanned: then the action is not reported as clean."""


EMPTY_SCAN = ContentScan()

LARGE = 1 << 16
_large_scan_lock = Lock()
"""Large actions are scanned in threads; several at once would starve the event loop."""


def scan_content(action: Action) -> ContentScan:
    """Scan every string of the action."""
    if len(action.canonical) <= LARGE:
        return _scan(action)
    with _large_scan_lock:
        return _scan(action)


def scan_secrets(action: Action) -> ContentScan:
    """Scan every string of the action for secrets only."""
    if len(action.canonical) <= LARGE:
        return _scan_secrets(action)
    with _large_scan_lock:
        return _scan_secrets(action)


def _scan_secrets(action: Action) -> ContentScan:
    strings = strings_in(action.parameters)
    secrets = _secrets_in((*texts_of(action), *strings))
    return ContentScan(
        secrets=tuple(sorted(secrets - {UNSCANNED})), complete=strings.complete and UNSCANNED not in secrets
    )


def _scan(action: Action) -> ContentScan:
    strings = strings_in(action.parameters) if action.parameters else NO_STRINGS
    own = [("query", action.query or ""), ("code", action.code or ""), ("target", action.target or "")]
    contents = [*[("", text) for _, text in own], *strings.pairs]
    pii: list[str] = []
    fields: dict[str, None] = {}
    privileged = False
    for field, path, text in _named_texts(own, strings.pairs):
        privileged = privileged or _PRIVILEGED.search(text.lower()) is not None
        kinds = [] if is_plain(text) else [finding.kind for finding in find_pii(text)]
        pii += kinds
        if not all(kind in _ADDRESSES and is_recipient(path, text) for kind in kinds):
            fields[field] = None
    secrets = _secrets_in((*contents, ("", action.tool or ""), ("", action.type)))
    if not (pii or secrets or privileged) and strings.complete:
        return EMPTY_SCAN
    incomplete = UNSCANNED in secrets or UNSCANNED in pii
    return ContentScan(
        has_pii=bool(pii),
        pii_fields=tuple(fields)[:_MAX_FIELDS],
        secrets=tuple(sorted(secrets - {UNSCANNED})),
        privileged=privileged,
        complete=strings.complete and not incomplete,
    )


def _named_texts(
    own: Iterable[tuple[str, str]], parameters: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield each text with the name of its field for a message, and its path; a strange name is not repeated."""
    yield from ((name, name, text) for name, text in own)
    for path, text in parameters:
        yield f"parameters.{path}" if _PLAIN_FIELD.fullmatch(path) else "parameters", path, text


def is_recipient(path: str, text: str) -> bool:
    """Return True if a field has the destination of a message, and its text no link, which could carry anything."""
    if not _LINK_SIGNS.isdisjoint(text):
        return False
    names = [re.sub("[_-]", "", part).lower() for part in path.split(".") if part and not part.isdigit()]
    if names == ["email"]:
        return True
    while len(names) > 1 and names[-1] in _PARTS_OF_RECIPIENTS:
        names.pop()
    return bool(names) and names[-1] in _RECIPIENTS and _CONTENT.isdisjoint(names)


def _secrets_in(texts: Iterable[tuple[str, str]]) -> set[str]:
    kinds: set[str] = set()
    for path, text in texts:
        if path or not is_plain(text):
            kinds.update([finding.kind for finding in (*find_secrets(text), *secrets_by_name(path, text))])
    return kinds


def texts_of(action: Action) -> list[tuple[str, str]]:
    """Return the texts of an action outside its parameters, including its names: a secret may be anywhere."""
    texts = (action.query, action.code, action.target, action.tool, action.type)
    return [("", text) for text in texts if text]


def name_at(path: str) -> str:
    """Return the last name in a path: `users.0.password` and `password.3` are both a password."""
    return next((part for part in reversed(path.split(".")) if part and not part.isdigit()), "")


def secrets_by_name(path: str, text: str) -> tuple[TextFinding, ...]:
    """Return secrets that are recognisable only with their name: `{"password": "..."}` is read as an assignment."""
    name = name_at(path)
    if not name or name == text:
        return ()
    prefix = f'{name} = "'
    # A secret in the name itself does not make the value one.
    return tuple(finding for finding in find_secrets(f'{prefix}{text}"') if finding.end > len(prefix))


def has_secret(texts: Iterable[tuple[str, str]]) -> bool:
    """Return True if one of these texts, each with its path, contains a secret."""
    return any(find_secrets(text) or secrets_by_name(path, text) for path, text in texts)
