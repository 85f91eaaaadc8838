"""Webhook URL policy: the text of a URL and the addresses of its host."""

import asyncio
import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwed.guards.ip_ranges import NEVER, PRIVATE, forbidden_kind, read_address
from qwed.webhooks.url_policy import MAX_LENGTH, Target, UrlRejection, parse_webhook_url, resolve, url_error

DATA = Path(__file__).parents[2] / "data"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


ADDRESSES = rows("webhook_addresses.jsonl")
REFUSED = [row for row in ADDRESSES if row["refused"]]
HONEST = [row for row in ADDRESSES if not row["refused"]]


def called(row: dict[str, Any]) -> str:
    return ascii(row["url"])[1:60] + (" private" if row["allow_private"] else "")


def resolved(host: str, texts: Sequence[str], allow_private: bool = False) -> Any:
    async def resolve_name(host: str, port: int) -> Sequence[str]:
        return texts

    return asyncio.run(resolve(host, 443, allow_private, resolve_name))


@pytest.mark.parametrize("row", REFUSED, ids=called)
def test_a_url_that_leads_astray_is_refused_with_what_is_wrong(row):
    refusal = url_error(row["url"], row["allow_private"])
    assert refusal is not None
    assert row["refused"] in refusal
    assert refusal.isprintable()
    assert len(refusal) < 512


@pytest.mark.parametrize("row", HONEST, ids=called)
def test_an_honest_url_passes(row):
    assert url_error(row["url"], row["allow_private"]) is None


@pytest.mark.parametrize("row", [row for row in REFUSED if row["allow_private"]], ids=called)
def test_what_is_refused_on_a_private_network_is_refused_on_the_internet(row):
    assert url_error(row["url"], False) is not None


@pytest.mark.parametrize("row", rows("webhook_resolved.jsonl"), ids=lambda row: ",".join(row["addresses"])[-60:])
def test_every_address_of_a_name_must_be_allowed(row):
    result = resolved("hooks.example.com", row["addresses"], row["allow_private"])
    if row["refused"] is None:
        assert len(result) == len(set(row["addresses"]))
    else:
        assert result == UrlRejection(f"the host name resolves to an address that is {row['refused']}")


@pytest.mark.parametrize(
    ("url", "target", "authority"),
    [
        ("https://Example.COM", Target("https", "example.com", 443, "/"), "example.com"),
        ("https://example.com.:8443?x=1", Target("https", "example.com", 8443, "/?x=1"), "example.com:8443"),
        ("HTTP://example.com:80/A?b=/", Target("http", "example.com", 80, "/A?b=/"), "example.com"),
        ("http://example.com:443/", Target("http", "example.com", 443, "/"), "example.com:443"),
        ("https://[2606:4700::1]:444", UrlRejection, None),
        ("https://[2606:4700::1]:4443/", Target("https", "2606:4700::1", 4443, "/"), "[2606:4700::1]:4443"),
    ],
)
def test_a_url_is_taken_apart_once(url, target, authority):
    result = parse_webhook_url(url, True)
    assert isinstance(result, UrlRejection) if target is UrlRejection else result == target
    assert getattr(result, "authority", None) == authority


def test_the_order_of_a_names_addresses_is_kept_and_none_is_there_twice():
    texts = ["2606:4700:4700::1111", "1.1.1.1", "1.1.1.1", "::ffff:1.1.1.1", "2606:4700:4700:0::1111"]
    assert [str(address) for address in resolved("example.com", texts)] == ["2606:4700:4700::1111", "1.1.1.1"]


def test_an_address_in_the_url_is_not_looked_up():
    assert resolved("1.1.1.1", ["127.0.0.1"]) == (ipaddress.ip_address("1.1.1.1"),)
    assert isinstance(resolved("127.0.0.1", ["1.1.1.1"]), UrlRejection)
    assert isinstance(resolved("::1", ["1.1.1.1"]), UrlRejection)


def test_a_name_that_changes_its_answer_is_asked_once():
    answers = [["1.1.1.1"], ["127.0.0.1"]]

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    assert asyncio.run(resolve("a.example.com", 443, False, rebinding)) == (ipaddress.ip_address("1.1.1.1"),)
    assert answers == [["127.0.0.1"]]


@pytest.mark.parametrize("character", [chr(code) for code in (*range(0x21), 0x7F, 0x80, 0xA0, 0x2028, 0xFF0E, 0x1F600)])
@pytest.mark.parametrize(
    "url", ["https://exam{}ple.com/", "https://example.com/{}", "{}https://example.com", "https{}://a.com"]
)
def test_no_character_outside_printable_ascii_passes(url, character):
    assert "printable ASCII" in (url_error(url.format(character), True) or "")


def test_a_lone_surrogate_is_refused_and_not_repeated():
    refusal = url_error("https://\ud800.example.com/", True)
    assert refusal is not None
    refusal.encode()


@pytest.mark.parametrize("piece", ["a", ".", "1.", "[", ":", "@", "%41", "%", "/", "?", "#", "a.", "0x", "-"])
def test_a_huge_url_is_refused_whatever_it_is_made_of(piece):
    assert "use at most" in (url_error("https://" + piece * 1_000_000, True) or "")


@pytest.mark.parametrize("piece", ["a", ".", "1.", "[", ":", "@", "%41", "%", "a.", "0x", "-", "a-", "0.", "[::"])
def test_the_longest_url_is_judged_whatever_it_is_made_of(piece):
    url = ("https://" + piece * MAX_LENGTH)[:MAX_LENGTH]
    assert url_error(url, False) is not None
    url = ("https://example.com/" + piece * MAX_LENGTH)[:MAX_LENGTH]
    assert url_error(url, False) is None or piece in "[%[::%41"


anything = st.text(max_size=80) | st.text("htps:/.@[]#?%0123456789abcdefxABC-_\\ \t", max_size=80).map(
    "https://".__add__
)


@given(anything, st.booleans())
def test_whatever_is_accepted_makes_a_clean_request(url, allow_private):
    target = parse_webhook_url(url, allow_private)
    if isinstance(target, UrlRejection):
        assert target.reason
        return
    for text in (target.host, target.path, target.authority):
        assert text.isascii()
        assert not set(text) & set(" \r\n\t\\#@\x00") - set("@" if text is target.path else "")
    assert 0 < target.port < 65_536
    assert target.path.startswith("/")


addresses = st.ip_addresses()
near_the_edges = st.sampled_from([network for network, _ in (*NEVER, *PRIVATE)]).flatmap(
    lambda network: st.sampled_from([-1, 0, 1]).map(
        lambda step: type(network.network_address)(max(0, int(network.network_address) + step))
    )
)


@given(addresses | near_the_edges)
def test_we_are_never_looser_than_the_standard_library(address):
    if forbidden_kind(address, False) is None:
        assert address.is_global
        assert not any((address.is_private, address.is_loopback, address.is_link_local, address.is_multicast))


@given(st.ip_addresses(v=4), st.booleans())
def test_an_address_in_wrapping_is_judged_as_what_it_reaches(inner, allow_private):
    expected = forbidden_kind(inner, allow_private)
    for prefix in ("::ffff:", "64:ff9b::"):
        wrapped = read_address(f"{prefix}{inner}")
        assert wrapped is not None
        assert forbidden_kind(wrapped, allow_private) == expected
    assert forbidden_kind(ipaddress.IPv6Address((0xFFFF << 32) + int(inner)), allow_private) == expected


@given(st.ip_addresses(v=4), st.sampled_from(["::", "::ffff:0:", "64:ff9b:1::"]))
def test_wrappings_that_are_not_in_use_are_refused_whatever_they_wrap(inner, prefix):
    assert forbidden_kind(ipaddress.IPv6Address(f"{prefix}{inner}"), False) is not None


@given(addresses)
def test_allowing_private_addresses_only_ever_allows_more(address):
    if forbidden_kind(address, True) is not None:
        assert forbidden_kind(address, False) is not None


@pytest.mark.parametrize(("network", "kind"), [*NEVER, *PRIVATE], ids=str)
def test_the_first_and_the_last_address_of_every_range_are_refused(network, kind):
    assert forbidden_kind(network[0], False) is not None
    assert forbidden_kind(network[-1], False) is not None
