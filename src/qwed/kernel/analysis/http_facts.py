"""Facts of a call that makes an HTTP request: method, host and path of exactly one request."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from qwed.guards.text_scan import strings_in
from qwed.kernel.analysis.addresses import TooManyAddressesError, hosts_within
from qwed.kernel.analysis.parameter_kinds import classify_name
from qwed.kernel.case import Case
from qwed.kernel.tool_verbs import meaning_of, words_of
from qwed.model import EffectKind, Verdict
from qwed.model.canonical_names import canonical_url
from qwed.model.facts import HttpFacts
from qwed.model.tool_name import base_tool_name

_API_CALL = "api_call"
_WEB = frozenset({"http", "https"})
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE"})
_METHOD_NAMES = frozenset({"method", "http_method"})
_ABOUT_HTTP = frozenset({"http", "https", "rest", "request"})
_SENT = frozenset({"body", "data", "json", "payload", "form", "files", "content", "raw_body"})
"""Parameters that are sent: a request with one of them is not a GET unless it says so."""
_PLAIN = frozenset(
    """
    params query timeout timeout_seconds timeout_ms prompt description max_length max_redirects start_index raw format
    formats accept encoding user_agent cookies retries verify follow_redirects allow_redirects stream
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Parameters that change neither method, host nor path."""
_REROUTING = re.compile(r"(?i)(?:host|forwarded|x-forwarded-.*|x-original-.*|x-rewrite-.*|.*method.*|:.*)")
"""Headers by which a server may take the request for another one."""
_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:[/\\]")


def http_facts(case: Case, verdict: Verdict) -> HttpFacts | None:
    """Return the facts of the request that a call makes, or None if it makes none."""
    action, name = case.action, base_tool_name(case.resolved_action.name)
    parameters: Mapping[str, Any] = action.parameters or {}
    addresses = list(dict.fromkeys(_addresses(action.target, parameters, is_request=name == _API_CALL)))
    connects = any(effect.kind is EffectKind.NETWORK for effect in verdict.effects)
    if not (name == _API_CALL or (addresses and connects)):
        return HttpFacts(complete=False) if connects else None
    if len(addresses) != 1:
        return HttpFacts(complete=False)
    url, method = canonical_url(addresses[0], schemes=_WEB), _method(name, parameters)
    is_plain = _is_plain(parameters, addresses[0]) and action.query is None and action.code is None
    if url is None:
        return HttpFacts(complete=False, method=method)
    known = is_plain and bool(method) and url.path is not None
    return HttpFacts(complete=known, method=method, host=url.host, path=url.path or "")


def _addresses(target: str | None, parameters: Mapping[str, Any], *, is_request: bool) -> Iterator[str]:
    """Yield the addresses of the call itself; those inside what it sends are data."""
    if target and (is_request or _SCHEME.match(target)):
        yield target
    for key, value in parameters.items():
        name = classify_name(key)
        if isinstance(value, str) and value and (name.url or (_SCHEME.match(value) and name.plain not in _SENT)):
            yield value


def _method(name: str, parameters: Mapping[str, Any]) -> str:
    """Return the method, or the empty string if it is not known: GET by default for a call that sends nothing."""
    stated = [value for key, value in parameters.items() if classify_name(key).plain in _METHOD_NAMES]
    if stated:
        methods = {value.upper() if isinstance(value, str) else "" for value in stated}
        method = methods.pop() if len(methods) == 1 else ""
        return method if method in _METHODS else ""
    words = frozenset(words_of(name))
    named = [word.upper() for word in words if word.upper() in _METHODS]
    if named and words & _ABOUT_HTTP:
        return named[0] if len(named) == 1 else ""
    sends = any(classify_name(key).plain in _SENT for key in parameters)
    return "GET" if not sends and (name == _API_CALL or meaning_of(name) == EffectKind.READ) else ""


def _is_plain(parameters: Mapping[str, Any], address: str) -> bool:
    """Return True if no parameter may lead the request to another method, host or path."""
    return all(_is_plain_parameter(key, value, address) for key, value in parameters.items())


def _is_plain_parameter(key: str, value: Any, address: str) -> bool:
    name = classify_name(key).plain
    if value == address or value is None or name in _METHOD_NAMES or name in _SENT:
        return True
    if name == "headers":
        return isinstance(value, Mapping) and not any(_REROUTING.fullmatch(header.strip()) for header in value)
    return name in _PLAIN and not _names_host(value)


def _names_host(value: Any) -> bool:
    """Return True if a value holds an address."""
    try:
        return any(next(hosts_within(text), None) is not None for _, text in strings_in(value))
    except TooManyAddressesError:
        return True
