"""The translator against a real server that speaks the protocol: what leaves, what is taken, what is refused."""

import gzip
import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

import qwed
from qwed.translate import provider as module
from qwed.translate.provider import LONGEST_TEXT, Provider, Translation, Translator, redacted
from tests.support.provider import Provider as Told
from tests.support.provider import in_turn, providing, raw, saying

MATH = {"engine": "math", "input": "2+2 = 5"}
LOGIC = {
    "engine": "logic",
    "premises": ["forall x. Human(x) -> Mortal(x)", "Human(socrates)"],
    "conclusion": "Mortal(socrates)",
}


def translated(told: Told, text: str = "two and two is five", seconds: float = 10.0) -> Translation | str:
    translator = Translator(Provider(told.base_url, "sk-local-key", "small"))
    try:
        return translator.translate(text, seconds).block(30)
    finally:
        translator.close()


def test_a_sentence_goes_out_and_a_formula_comes_back() -> None:
    with providing(saying(MATH)) as told:
        assert translated(told) == Translation("math", "2+2 = 5", {}, "small")
    assert told.heard[0]["path"] == "/v1/chat/completions"
    assert (told.heard[0]["model"], told.heard[0]["temperature"]) == ("small", 0)
    assert told.headers[0]["authorization"] == "Bearer sk-local-key"
    assert told.said == "two and two is five"


def test_premises_and_a_conclusion_come_back_as_such() -> None:
    with providing(saying(LOGIC)) as told:
        found = translated(told, "Socrates is mortal because all humans are")
    assert isinstance(found, Translation)
    assert (found.engine, dict(found.parameters)) == (
        "logic",
        {"premises": LOGIC["premises"], "conclusion": LOGIC["conclusion"]},
    )


SECRETS = ["ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2, "alice.jones@example.com", "4111 1111 1111 1111"]


@pytest.mark.parametrize("secret", SECRETS)
def test_neither_a_secret_nor_personal_data_leaves(secret: str) -> None:
    with providing(saying(MATH)) as told:
        translated(told, f"is {secret} really 5 more than 4?")
    assert secret not in json.dumps(told.heard)
    assert told.said.startswith("is [")
    assert told.said.endswith("] really 5 more than 4?")


def test_a_text_without_any_leaves_as_it_is() -> None:
    assert redacted("is 7 a prime number?") == "is 7 a prime number?"


WRONG: list[Any] = [
    "",
    "no json at all",
    "[]",
    "null",
    {},
    {"engine": "none"},
    {"engine": "math"},
    {"engine": "math", "input": ""},
    {"engine": "math", "input": 5},
    {"engine": "math", "input": "x" * (LONGEST_TEXT + 1)},
    {"engine": "code", "input": "import os"},
    {"engine": "sql", "input": "DROP TABLE users"},
    {"engine": ["math"], "input": "1 = 1"},
    {"engine": "logic", "premises": "P", "conclusion": "Q"},
    {"engine": "logic", "premises": ["P", 1], "conclusion": "Q"},
    {"engine": "logic", "premises": ["P"]},
    "[" * 100_000,
]


@pytest.mark.parametrize("proposal", WRONG, ids=lambda proposal: json.dumps(proposal)[:40])
def test_an_answer_of_another_shape_is_no_translation(proposal: Any) -> None:
    with providing(saying(proposal)) as told:
        assert isinstance(translated(told), str)


BODIES = [b"", b"{", b"null", b"[]", b'{"choices": []}', b'{"choices": [{}]}', b"\xff\xfe", b"x" * 100_000]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: ascii(body[:20]))
def test_a_body_of_another_shape_is_no_translation(body: bytes) -> None:
    with providing(raw(body)) as told:
        assert isinstance(translated(told), str)


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_a_refusal_is_told_with_its_status(status: int) -> None:
    with providing(raw(b"{}", status)) as told:
        assert translated(told) == f"the translator answered with status {status}"


def test_a_redirect_is_not_followed() -> None:
    with providing(raw(b"", 307, location="http://127.0.0.1:9/elsewhere")) as told:
        assert translated(told) == "the translator answered with status 307"


def test_who_never_answers_is_not_waited_for() -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        handler.server.provider.released.wait(30)  # type: ignore[attr-defined]

    with providing(silent) as told:
        assert "does not answer" in str(translated(told, seconds=0.3))


def test_who_answers_letter_by_letter_is_not_waited_for() -> None:
    def slow(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        released = handler.server.provider.released  # type: ignore[attr-defined]
        try:
            while not released.wait(0.05):
                handler.wfile.write(b" ")
        except OSError:
            return

    with providing(slow) as told:
        assert "does not answer" in str(translated(told, seconds=0.5))


def test_who_sends_headers_letter_by_letter_is_not_waited_for_either() -> None:
    def slow(handler: BaseHTTPRequestHandler) -> None:
        released = handler.server.provider.released  # type: ignore[attr-defined]
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
        try:
            while not released.wait(0.05):
                handler.wfile.write(b"a")
        except OSError:
            return

    with providing(slow) as told:
        assert "does not answer" in str(translated(told, seconds=0.5))


def test_whoever_waits_when_the_translator_is_closed_is_told_and_so_is_whoever_comes_after() -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        handler.server.provider.released.wait(30)  # type: ignore[attr-defined]

    with providing(silent) as told:
        translator = Translator(Provider(told.base_url, "", "small"))
        waiting = [translator.translate("one is two", 60) for _ in range(module.AT_ONCE + 1)]
        translator.close()
        assert {ticket.block(20) for ticket in waiting} == {"the translator is closed"}
        assert translator.translate("one is two", 60).block(20) == "the translator is closed"


def test_a_process_ends_though_a_provider_keeps_it_waiting() -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        handler.server.provider.released.wait(60)  # type: ignore[attr-defined]

    with providing(silent) as told:
        program = f"""
from qwed.translate.provider import Provider, Translator
translator = Translator(Provider({told.base_url!r}, "", "small"))
translator.translate("one is two", 60)
translator.close()
"""
        subprocess.run([sys.executable, "-c", program], check=True, timeout=50)


def test_an_answer_that_unpacks_into_more_is_not_unpacked() -> None:
    packed = gzip.compress(b" " * (32 << 20))
    with providing(raw(packed, 200, **{"content-encoding": "gzip"})) as told:
        assert "packed" in str(translated(told))
    assert told.headers[0]["accept-encoding"] == "identity"


def test_what_a_provider_wants_to_have_remembered_is_forgotten() -> None:
    answer = json.dumps({"choices": [{"message": {"content": json.dumps(MATH)}}]}).encode()
    with providing(raw(answer, 200, **{"set-cookie": "who=you"})) as told:
        translator = Translator(Provider(told.base_url, "", "small"))
        try:
            for _ in range(2):
                assert isinstance(translator.translate("two and two is five", 10).block(30), Translation)
        finally:
            translator.close()
    assert all("cookie" not in headers for headers in told.headers)


def test_nobody_there_is_told() -> None:
    translator = Translator(Provider("http://127.0.0.1:9/v1", "", "small"))
    try:
        assert "does not answer" in str(translator.translate("one is two", 5).block(30))
        assert "characters" in str(translator.translate("x" * (LONGEST_TEXT + 1), 5).block(30))
    finally:
        translator.close()


def test_too_many_at_once_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 0)
    with providing(saying(MATH)) as told:
        assert translated(told) == "the translator is busy, try again"


def test_the_key_is_never_printed() -> None:
    assert "sk-local-key" not in repr(Provider("http://127.0.0.1/v1", "sk-local-key", "small"))


CLAIMS = [("2+2 = 4", "VERIFIED"), ("2+2 = 5", "FAILED"), ("1/0 = 1", "BLOCKED"), ("2+2", "SIMPLIFIED")]


def test_what_was_translated_is_at_best_inconclusive() -> None:
    proposals = (saying({"engine": "math", "input": formula}) for formula, _status in CLAIMS)
    with (
        providing(in_turn(*proposals)) as told,
        qwed.open(llm_base_url=told.base_url, llm_model="small") as gate,
    ):
        for formula, status in CLAIMS:
            found = gate.verify("is the sum of two and two what they say?", options={"include_attestation": True})
            assert (found.status, found.verified, found.is_valid) == ("INCONCLUSIVE", False, False)
            assert (found.proof_ref, found.attestation) == (None, None)
            assert found.result["translation"]["input"] == formula
            assert found.result["translation"]["status"] == status


def test_an_address_without_a_model_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="QWED_LLM_MODEL"):
        qwed.open(llm_base_url="http://127.0.0.1:9/v1")


def test_a_formula_is_never_sent_to_the_provider() -> None:
    with (
        providing(saying(MATH)) as told,
        qwed.open(llm_base_url=told.base_url, llm_model="small") as gate,
    ):
        assert gate.verify("2+2 = 4").status == "VERIFIED"
    assert told.heard == []


def test_what_it_asks_with_is_not_loaded_before_it_is_wanted() -> None:
    program = "import sys, qwed, qwed.api.app; qwed.open().close(); sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
