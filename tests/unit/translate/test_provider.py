"""Translator against a real server of the protocol: what is sent, accepted and refused."""

import gzip
import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

import qwed
from qwed.translate import provider as module
from qwed.translate.provider import MAX_TEXT_LENGTH, Provider, Translation, Translator, redact_text
from tests.support.chat_completions_server import ChatServer as ChatServer
from tests.support.chat_completions_server import answer_bytes, answer_in_turn, answer_proposal, chat_server

MATH = {"engine": "math", "input": "2+2 = 5"}
LOGIC = {
    "engine": "logic",
    "premises": ["forall x. Human(x) -> Mortal(x)", "Human(socrates)"],
    "conclusion": "Mortal(socrates)",
}


def translated(server: ChatServer, text: str = "two and two is five", seconds: float = 10.0) -> Translation | str:
    translator = Translator(Provider(server.base_url, "sk-local-key", "small"))
    try:
        return translator.translate(text, seconds).wait_result(30)
    finally:
        translator.close()


def test_a_sentence_goes_out_and_a_formula_comes_back() -> None:
    with chat_server(answer_proposal(MATH)) as server:
        assert translated(server) == Translation("math", "2+2 = 5", {}, "small")
    assert server.heard[0]["path"] == "/v1/chat/completions"
    assert (server.heard[0]["model"], server.heard[0]["temperature"]) == ("small", 0)
    assert server.headers[0]["authorization"] == "Bearer sk-local-key"
    assert server.said == "two and two is five"


def test_premises_and_a_conclusion_come_back_as_such() -> None:
    with chat_server(answer_proposal(LOGIC)) as server:
        result = translated(server, "Socrates is mortal because all humans are")
    assert isinstance(result, Translation)
    assert (result.engine, dict(result.parameters)) == (
        "logic",
        {"premises": LOGIC["premises"], "conclusion": LOGIC["conclusion"]},
    )


SECRETS = ["ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2, "alice.jones@example.com", "4111 1111 1111 1111"]


@pytest.mark.parametrize("secret", SECRETS)
def test_neither_a_secret_nor_personal_data_leaves(secret: str) -> None:
    with chat_server(answer_proposal(MATH)) as server:
        translated(server, f"is {secret} really 5 more than 4?")
    assert secret not in json.dumps(server.heard)
    assert server.said.startswith("is [")
    assert server.said.endswith("] really 5 more than 4?")


def test_a_text_without_any_leaves_as_it_is() -> None:
    assert redact_text("is 7 a prime number?") == "is 7 a prime number?"


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
    {"engine": "math", "input": "x" * (MAX_TEXT_LENGTH + 1)},
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
    with chat_server(answer_proposal(proposal)) as server:
        assert isinstance(translated(server), str)


BODIES = [b"", b"{", b"null", b"[]", b'{"choices": []}', b'{"choices": [{}]}', b"\xff\xfe", b"x" * 100_000]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: ascii(body[:20]))
def test_a_body_of_another_shape_is_no_translation(body: bytes) -> None:
    with chat_server(answer_bytes(body)) as server:
        assert isinstance(translated(server), str)


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_a_refusal_is_told_with_its_status(status: int) -> None:
    with chat_server(answer_bytes(b"{}", status)) as server:
        assert translated(server) == f"the translator answered with status {status}"


def test_a_redirect_is_not_followed() -> None:
    with chat_server(answer_bytes(b"", 307, location="http://127.0.0.1:9/elsewhere")) as server:
        assert translated(server) == "the translator answered with status 307"


def test_who_never_answers_is_not_waited_for() -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        handler.server.provider.released.wait(30)  # type: ignore[attr-defined]

    with chat_server(silent) as server:
        assert "does not answer" in str(translated(server, seconds=0.3))


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

    with chat_server(slow) as server:
        assert "does not answer" in str(translated(server, seconds=0.5))


def test_who_sends_headers_letter_by_letter_is_not_waited_for_either() -> None:
    def slow(handler: BaseHTTPRequestHandler) -> None:
        released = handler.server.provider.released  # type: ignore[attr-defined]
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
        try:
            while not released.wait(0.05):
                handler.wfile.write(b"a")
        except OSError:
            return

    with chat_server(slow) as server:
        assert "does not answer" in str(translated(server, seconds=0.5))


def test_closing_the_translator_fails_pending_and_later_requests() -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        handler.server.provider.released.wait(30)  # type: ignore[attr-defined]

    with chat_server(silent) as server:
        translator = Translator(Provider(server.base_url, "", "small"))
        waiting = [translator.translate("one is two", 60) for _ in range(module.MAX_CONCURRENT + 1)]
        translator.close()
        assert {future.wait_result(20) for future in waiting} == {"the translator is closed"}
        assert translator.translate("one is two", 60).wait_result(20) == "the translator is closed"


def test_a_process_ends_though_a_provider_keeps_it_waiting() -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        handler.server.provider.released.wait(60)  # type: ignore[attr-defined]

    with chat_server(silent) as server:
        program = f"""
from qwed.translate.provider import Provider, Translator
translator = Translator(Provider({server.base_url!r}, "", "small"))
translator.translate("one is two", 60)
translator.close()
"""
        subprocess.run([sys.executable, "-c", program], check=True, timeout=50)


def test_an_answer_that_unpacks_into_more_is_not_unpacked() -> None:
    packed = gzip.compress(b" " * (32 << 20))
    with chat_server(answer_bytes(packed, 200, **{"content-encoding": "gzip"})) as server:
        assert "compressed" in str(translated(server))
    assert server.headers[0]["accept-encoding"] == "identity"


def test_what_a_provider_wants_to_have_remembered_is_forgotten() -> None:
    answer = json.dumps({"choices": [{"message": {"content": json.dumps(MATH)}}]}).encode()
    with chat_server(answer_bytes(answer, 200, **{"set-cookie": "who=you"})) as server:
        translator = Translator(Provider(server.base_url, "", "small"))
        try:
            for _ in range(2):
                assert isinstance(translator.translate("two and two is five", 10).wait_result(30), Translation)
        finally:
            translator.close()
    assert all("cookie" not in headers for headers in server.headers)


def test_a_missing_provider_is_reported() -> None:
    translator = Translator(Provider("http://127.0.0.1:9/v1", "", "small"))
    try:
        assert "does not answer" in str(translator.translate("one is two", 5).wait_result(30))
        assert "characters" in str(translator.translate("x" * (MAX_TEXT_LENGTH + 1), 5).wait_result(30))
    finally:
        translator.close()


def test_too_many_at_once_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED", 0)
    with chat_server(answer_proposal(MATH)) as server:
        assert translated(server) == "the translator is busy, try again"


def test_the_key_is_never_printed() -> None:
    assert "sk-local-key" not in repr(Provider("http://127.0.0.1/v1", "sk-local-key", "small"))


CLAIMS = [("2+2 = 4", "VERIFIED"), ("2+2 = 5", "FAILED"), ("1/0 = 1", "BLOCKED"), ("2+2", "SIMPLIFIED")]


def test_what_was_translated_is_at_best_inconclusive() -> None:
    proposals = (answer_proposal({"engine": "math", "input": formula}) for formula, _status in CLAIMS)
    with (
        chat_server(answer_in_turn(*proposals)) as server,
        qwed.open(llm_base_url=server.base_url, llm_model="small") as gate,
    ):
        for formula, status in CLAIMS:
            result = gate.verify("is the sum of two and two what they say?", options={"include_attestation": True})
            assert (result.status, result.verified, result.is_valid) == ("INCONCLUSIVE", False, False)
            assert (result.proof_ref, result.attestation) == (None, None)
            assert result.result["translation"]["input"] == formula
            assert result.result["translation"]["status"] == status


def test_an_address_without_a_model_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="QWED_LLM_MODEL"):
        qwed.open(llm_base_url="http://127.0.0.1:9/v1")


def test_a_formula_is_never_sent_to_the_provider() -> None:
    with (
        chat_server(answer_proposal(MATH)) as server,
        qwed.open(llm_base_url=server.base_url, llm_model="small") as gate,
    ):
        assert gate.verify("2+2 = 4").status == "VERIFIED"
    assert server.heard == []


def test_what_it_asks_with_is_not_loaded_before_it_is_wanted() -> None:
    program = "import sys, qwed, qwed.api.app; qwed.open().close(); sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
