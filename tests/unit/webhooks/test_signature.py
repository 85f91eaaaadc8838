"""Signature of a notice: only the holder of the secret can create and verify it."""

import hashlib
import hmac
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwed.webhooks.signature import TOLERANCE_SECONDS, sign, verify

SECRET = "whsec_0123456789abcdef"
BODY = b'{"id":"ntc_1","event":"pending"}'
NOW = 1_790_000_000
HEADER = sign(SECRET, NOW, BODY)
MAC = HEADER.partition("v1=")[2]


def test_the_header_is_the_time_and_the_mac_of_the_time_and_the_body():
    expected = hmac.new(SECRET.encode(), f"{NOW}.{BODY.decode()}".encode(), hashlib.sha256).hexdigest()
    assert f"t={NOW},v1={expected}" == HEADER


def test_a_signature_is_what_another_program_makes_it():
    """By `printf "1.{}" | openssl dgst -sha256 -hmac secret`."""
    assert sign("secret", 1, b"{}") == "t=1,v1=" + "1122767b193110cfec322b6f199b599edbf608ed087f2d27afb0b97d99523908"


def test_an_honest_notice_verifies():
    assert verify(SECRET, HEADER, BODY, NOW + 0.5)


@pytest.mark.parametrize("late", [-TOLERANCE_SECONDS, -1, 0, 1, TOLERANCE_SECONDS])
def test_a_clock_may_be_wrong_by_the_tolerance(late):
    assert verify(SECRET, HEADER, BODY, NOW + late)


@pytest.mark.parametrize(
    "late", [-TOLERANCE_SECONDS - 1, TOLERANCE_SECONDS + 0.001, 86_400, -math.inf, math.inf, math.nan]
)
def test_an_old_notice_and_one_from_the_future_are_refused(late):
    assert not verify(SECRET, HEADER, BODY, NOW + late)


def test_the_tolerance_may_be_chosen():
    assert verify(SECRET, HEADER, BODY, NOW + 5, 5)
    assert not verify(SECRET, HEADER, BODY, NOW + 5, 4)
    assert not verify(SECRET, HEADER, BODY, NOW, -1)
    assert not verify(SECRET, HEADER, BODY, NOW, math.nan)


@pytest.mark.parametrize("body", [b"", BODY + b" ", BODY[:-1], BODY.replace(b"1", b"2"), b"1790000000." + BODY])
def test_another_body_is_refused(body):
    assert not verify(SECRET, HEADER, body, NOW)


@pytest.mark.parametrize("secret", ["", "x", SECRET.upper(), SECRET + " ", SECRET[:-1]])
def test_another_secret_is_refused(secret):
    assert not verify(secret, HEADER, BODY, NOW)


def test_without_a_secret_nothing_verifies():
    assert not verify("", sign("", NOW, BODY), BODY, NOW)


def test_the_time_is_signed_too():
    assert not verify(SECRET, f"t={NOW + 1},v1={MAC}", BODY, NOW)


def test_the_dot_between_time_and_body_cannot_be_moved():
    header = sign(SECRET, 179_000_000, b"0." + BODY)
    assert not verify(SECRET, header.replace("t=179000000", f"t={NOW}"), BODY, NOW)


def test_one_right_signature_among_several_is_enough_while_a_secret_is_changed():
    other = sign("the old secret", NOW, BODY).partition(",")[2]
    assert verify(SECRET, f"t={NOW},{other},v1={MAC}", BODY, NOW)
    assert verify(SECRET, f"t={NOW},v1={MAC},{other}", BODY, NOW)
    assert not verify(SECRET, f"t={NOW},{other},{other}", BODY, NOW)


@pytest.mark.parametrize(
    "header",
    [
        "",
        MAC,
        f"t={NOW}",
        f"v1={MAC}",
        f"v1={MAC},t={NOW}",
        f"t={NOW},v1=",
        f"t={NOW},v1={MAC[:-1]}",
        f"t={NOW},v1={MAC}0",
        f"t={NOW},v1={MAC.upper()}",
        f"t={NOW},v0={MAC}",
        f"t={NOW},v2={MAC}",
        f"t={NOW}, v1={MAC}",
        f" t={NOW},v1={MAC}",
        f"t={NOW},v1={MAC}\n",
        f"t={NOW},v1={MAC},",
        f"t={NOW},t={NOW},v1={MAC}",
        f"T={NOW},v1={MAC}",
        f"t=+{NOW},v1={MAC}",
        f"t=-{NOW},v1={MAC}",
        f"t={NOW}.0,v1={MAC}",
        f"t=1_790_000_000,v1={MAC}",
        f"t=0x6ab13b80,v1={MAC}",
        f"t=\u0661\u0667\u0669\u0660\u0660\u0660\u0660\u0660\u0660\u0660,v1={MAC}",
        f"t={'9' * 5000},v1={MAC}",
        f"t=nan,v1={MAC}",
        f"t={NOW},v1=" + "\u00e9" * 64,
        f"t={NOW}" + f",v1={MAC}" * 5,
        f"t={NOW}" + f",v1={MAC}" * 100_000,
        "\x00",
    ],
    ids=lambda header: ascii(header)[:50],
)
def test_a_header_of_another_shape_is_refused(header):
    assert not verify(SECRET, header, BODY, NOW)


@given(st.text(min_size=1), st.integers(0, 10**12 - 1), st.binary())
def test_what_is_signed_verifies(secret, timestamp, body):
    try:
        secret.encode()
    except UnicodeEncodeError:
        return
    assert verify(secret, sign(secret, timestamp, body), body, timestamp)


@given(st.text(max_size=200))
def test_no_header_raises_and_none_is_guessed(header):
    assert not verify(SECRET, header, BODY, NOW)
