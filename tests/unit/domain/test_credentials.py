"""Credentials are shown once, stored as a digest, and found by a public prefix (ruling 4.18)."""

import hashlib
import re

import pytest

from qwed.domain.credentials import AGENT_TOKEN, API_KEY, digest_of, matches, mint, prefix_of


@pytest.mark.parametrize("kind", [API_KEY, AGENT_TOKEN])
def test_a_credential_carries_its_prefix_and_enough_chance(kind: str) -> None:
    minted = mint(kind)
    assert re.fullmatch(rf"{kind}_[0-9a-f]{{52}}", minted.text)
    assert prefix_of(minted.text, kind) == minted.prefix
    secret = minted.text.removeprefix(minted.prefix)
    assert len(secret) * 4 >= 128
    assert minted.digest == hashlib.sha256(minted.text.encode()).digest()


def test_no_two_credentials_are_alike() -> None:
    credentials = [mint(API_KEY) for _ in range(1000)]
    assert len({one.text for one in credentials}) == len({one.digest for one in credentials}) == 1000


def test_only_the_whole_text_matches() -> None:
    minted = mint(API_KEY)
    assert matches(minted.text, minted.digest)
    for wrong in (minted.prefix, minted.text[:-1], minted.text + "0", minted.text.upper(), "", "\ud800"):
        assert not matches(wrong, minted.digest)


def test_nothing_matches_where_nothing_is_kept() -> None:
    assert not matches("anything", None)
    assert not matches("", None)


@pytest.mark.parametrize(
    "text", ["", "qwed_live", "qwed_agent_0123456789ab", "QWED_LIVE_0123", " qwed_live_0", "qwed_live_" + "0" * 200]
)
def test_what_is_no_key_has_no_prefix(text: str) -> None:
    assert prefix_of(text, API_KEY) is None


def test_any_text_has_a_digest() -> None:
    assert len(digest_of("\udfff\x00\U0010ffff")) == 32
