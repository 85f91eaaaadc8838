"""Facts of a call that sends a message: its recipients and their domains."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from qwed.guards.text_scan import strings_in
from qwed.kernel.analysis.parameter_kinds import classify_name
from qwed.kernel.case import Case
from qwed.kernel.tool_verbs import words_of
from qwed.model import EffectKind, Verdict
from qwed.model.canonical_names import canonical_address
from qwed.model.facts import EmailFacts, bounded
from qwed.model.tool_name import base_tool_name

_SEND_EMAIL = "send_email"
_MAIL_WORDS = frozenset({"mail", "email", "emails", "mails", "gmail", "smtp", "outlook"})
_SENDER = re.compile(r"(?:from|sender|reply_to)(?:_(?:name|email|address))?")
_RECIPIENT = re.compile(
    r"(?:\w+_)?(?:to|cc|bcc|recipients?|emails?|e_mail|mailto|receivers?|addressees?|(?:to|email|mail)_address(?:es)?)"
)
_TEXT = frozenset({"body", "text", "html", "content", "message", "body_html", "body_text", "html_body", "text_body"})
_LETTER = _TEXT | {"subject", "title", "priority", "format", "content_type", "language", "is_html", "attachments"}
"""Parameters of a message that name no recipient."""
_ITEM = re.compile(r'(?:"[^"\\]*"|<[^<>]*>|[^,;"<>])+')
_NAMED = re.compile(r'\s*(?:"[^"\\<>@]*"|[^"\\<>@,;:()\[\]]*)\s*<([^<>]*)>\s*')
_LINE_END = re.compile(r"[\r\n\x0b\x0c\x85\u2028\u2029]")
_MAIL_LIKE = re.compile(r"[^\s<>()\[\],;:\"'@]{1,64}@[^\s<>()\[\],;:\"'@/]{1,253}")
_MAX_LENGTH = 65_536


class _Recipients(NamedTuple):
    addresses: list[str]
    complete: bool = True


def email_facts(case: Case, verdict: Verdict) -> EmailFacts | None:
    """Return the recipients of the message that a call sends, or None if it sends no mail."""
    name, parameters = base_tool_name(case.resolved_action.name), case.action.parameters or {}
    sends = any(effect.kind is EffectKind.COMMUNICATE for effect in verdict.effects)
    is_mail = name == _SEND_EMAIL or not _MAIL_WORDS.isdisjoint(words_of(name)) or _has_recipient(parameters)
    if not (name == _SEND_EMAIL or (sends and is_mail)):
        return None
    parts = [*_parts(parameters)]
    if case.action.target:
        parts.append(_recipients_of(case.action.target))
    addresses, all_addresses = bounded(address for part in parts for address in part.addresses)
    domains, _ = bounded(address.rpartition("@")[2] for address in addresses)
    complete = bool(addresses) and all_addresses and all(part.complete for part in parts)
    # A query or code beside the parameters says nothing that is known about a message.
    complete = complete and not (case.action.query or case.action.code)
    return EmailFacts(complete=complete, recipients=addresses, domains=domains)


def _has_recipient(parameters: Mapping[str, Any]) -> bool:
    """Return True if a parameter that is named for recipients holds an address."""
    values = (value for key, value in parameters.items() if _RECIPIENT.fullmatch(classify_name(key).plain))
    return any("@" in text for value in values for _, text in strings_in(value))


def _parts(parameters: Mapping[str, Any]) -> Iterator[_Recipients]:
    for key, value in parameters.items():
        name = classify_name(key).plain
        if value is None or value in ("", []):
            continue
        if _SENDER.fullmatch(name) or name in _LETTER:
            # A line end in a header begins another one, which may name more recipients.
            is_header = name not in _TEXT and name != "attachments"
            yield _Recipients([], not (is_header and isinstance(value, str) and _LINE_END.search(value)))
        elif _RECIPIENT.fullmatch(name):
            yield _recipients_of(value)
        else:
            # A parameter that is not known may name recipients: headers, a list, a group.
            yield _Recipients([address for _, text in strings_in(value) for address in _found_in(text)], False)


def _recipients_of(value: Any) -> _Recipients:
    if isinstance(value, str):
        return _recipients_in(value)
    if isinstance(value, Mapping):
        address = value.get("email") or value.get("address")
        rest = set(value) - {"email", "address", "name"}
        found = _recipients_of(address) if isinstance(address, str) else _Recipients([], False)
        both = "email" in value and "address" in value
        return _Recipients(found.addresses, found.complete and not rest and not both)
    if isinstance(value, list | tuple):
        parts = [_recipients_of(item) for item in value]
        return _Recipients([each for part in parts for each in part.addresses], all(part.complete for part in parts))
    return _Recipients([], False)


def _recipients_in(text: str) -> _Recipients:
    """Return the addresses in a text such as `Ann <ann@example.com>, bob@example.com`."""
    if len(text) > _MAX_LENGTH or _LINE_END.search(text):
        return _Recipients(_found_in(text[:_MAX_LENGTH]), False)
    items = [match[0] for match in _ITEM.finditer(text)]
    whole = sum(map(len, items)) + sum(text.count(mark) for mark in ",;") >= len(text) and items
    addresses = [_address_of(item) for item in items if item.strip()]
    if not whole or None in addresses:
        return _Recipients(_found_in(text), False)
    return _Recipients([address for address in addresses if address])


def _address_of(item: str) -> str | None:
    named = _NAMED.fullmatch(item)
    return canonical_address(named[1] if named else item)


def _found_in(text: str) -> list[str]:
    """Return what looks like an address anywhere in a text that is not understood."""
    found = (canonical_address(match[0].rstrip(".")) for match in _MAIL_LIKE.finditer(text[:_MAX_LENGTH]))
    return [address for address in found if address]
