"""Messages about an action contain none of its secrets; other text stays unchanged."""

from typing import Any

import msgspec
import pytest

from qwed.kernel.answer import Answer, Problem, Verification
from qwed.kernel.privacy.redaction import Redactor
from qwed.kernel.request import Action, read_action
from qwed.model import Decision

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
AWS = "AKIA" + "IOSFODNN7ABCDEFG"
PHRASE = "correct horse battery"
"""A secret only by its name: no pattern matches it."""
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"


def _action(**fields: Any) -> Action:
    action = read_action({"type": "tool_call", **fields})
    assert isinstance(action, Action)
    return action


def _verification(message: str, *targets: str) -> Verification:
    return Verification(
        status="BLOCKED",
        engine="tool",
        risk_level="high",
        checks_passed=("syntax_valid",),
        checks_failed=("no_secrets",),
        effects=tuple({"effect": "READ", "target": target} for target in targets),
        message=message,
    )


def _refusal(message: str, details: dict[str, Any]) -> Answer:
    error = Problem(code="QWED-AGENT-ACTION", message=message, details=details, final=True, suggestion="ask a person")
    return Answer(decision=Decision.DENIED, error=error)


CARRYING = {
    "a query": _action(type="execute_sql", query=f"SELECT '{TOKEN}'"),
    "code": _action(type="execute_code", code=f"token = '{TOKEN}'"),
    "a target": _action(type="file_read", target=f"/home/{TOKEN}/x"),
    "the name of a tool": _action(tool=f"tool_{TOKEN}"),
    "the name of a type": _action(type=f"kind_{TOKEN}"),
    "a parameter": _action(tool="t", parameters={"note": f"see {TOKEN} there"}),
    "a list in a parameter": _action(tool="t", parameters={"a": [{"b": ["x", TOKEN]}]}),
    "the name of a parameter": _action(tool="t", parameters={TOKEN: 1}),
}
carrying = pytest.mark.parametrize("action", CARRYING.values(), ids=CARRYING)
GLUED = {
    "alone": "{}",
    "in backticks": "`{}` is not allowed",
    "behind a letter": "x{} is not allowed",
    "before a letter": "{}x is not allowed",
    "between words": "a_{}_b",
    "between accents": "é{}é",
    "in a path": "/tmp/{}.txt",
    "in an address": "https://example.com/?q={}&r=1",
    "twice": "{0}{0}",
    "on a line of its own": "a\n{}\nb",
}
glued = pytest.mark.parametrize("around", GLUED.values(), ids=GLUED)


@carrying
@glued
def test_a_secret_is_hidden_in_a_text_whatever_it_is_glued_to(action: Action, around: str) -> None:
    redacted = Redactor(action).text(around.format(TOKEN))
    assert TOKEN not in redacted
    assert "[secret:" in redacted


@carrying
def test_a_secret_is_hidden_in_messages_details_and_effects(action: Action) -> None:
    redactor = Redactor(action)
    verification = redactor.verification(_verification(f"`x{TOKEN}y` is not allowed", f"users.{TOKEN}", "users"))
    details = {"near": [f"a{TOKEN}", {"deep": (f"{TOKEN}b", 3)}], "limit": 5, "none": None, "yes": True}
    refused = redactor.refusal(_refusal(f"no such tool `{TOKEN}`", details))
    assert TOKEN not in msgspec.json.encode((verification, refused)).decode()
    assert verification.effects[1] == {"effect": "READ", "target": "users"}
    assert refused.error is not None
    assert (refused.error.details["limit"], refused.error.details["none"], refused.error.details["yes"]) == (
        5,
        None,
        True,
    )
    assert (refused.decision, refused.error.code, refused.error.final) == (Decision.DENIED, "QWED-AGENT-ACTION", True)


NAMED = {"password": PHRASE, "passphrase": PHRASE, "api_key": "plum-77-quince", "client_secret": "plum-77-quince"}


@glued
@pytest.mark.parametrize(("name", "secret"), NAMED.items(), ids=NAMED)
def test_a_secret_only_its_name_tells_of_is_hidden_too(name: str, secret: str, around: str) -> None:
    for parameters in ({name: secret}, {"users": [{name: [secret]}]}):
        redacted = Redactor(_action(tool="login", parameters=parameters)).text(around.format(secret))
        assert secret not in redacted
        assert f"[secret:{name}]" in redacted


def test_of_a_secret_inside_a_longer_one_nothing_is_left_over() -> None:
    longer = f"{TOKEN} and the rest of it"
    for parameters in ({"note": TOKEN, "password": longer}, {"password": longer, "note": TOKEN}):
        redacted = Redactor(_action(tool="t", parameters=parameters)).text(f"got `{longer}`")
        assert redacted == "got `[secret:password]`"


def test_every_secret_of_an_action_is_hidden() -> None:
    action = _action(tool="t", target=AWS, parameters={"a": TOKEN, "password": PHRASE, "pem": KEY})
    redacted = Redactor(action).text(f"{PHRASE}{AWS}{TOKEN}{KEY}")
    assert not any(secret in redacted for secret in (PHRASE, AWS, TOKEN, KEY, "MIIEvQ"))


def test_a_secret_that_the_action_does_not_hold_is_hidden_where_it_is_recognised() -> None:
    redacted = Redactor(_action(tool="t", parameters={"password": PHRASE})).text(f"the engine saw {TOKEN}")
    assert redacted == "the engine saw [secret:github_token]"


HONEST = [
    "",
    "2+2",
    "`2+2` is 4",
    "a person must approve this medium risk action",
    "daily cost limit exceeded",
    "no such tool `send_mail`: use `send_email`",
    "SELECT name FROM users WHERE id = 1",
    "the password must have 12 characters",
    "/home/anna/notes.txt",
    "someone@example.com",
    "naïve café — 東京 🙂",
    "a\tb\nc",
    "act_01a0c3d57f4000000a5be70f47",
    "sha256:" + "0" * 64,
    "x" * 100_000,
]


@pytest.mark.parametrize("text", HONEST, ids=range(len(HONEST)))
@pytest.mark.parametrize(
    "action",
    [
        _action(tool="t", parameters={"body": "hello", "count": 3}),
        _action(tool="t", parameters={"password": PHRASE}),
        _action(type="calculate", query="2+2"),
    ],
    ids=["no secret", "a secret elsewhere", "a sum"],
)
def test_honest_text_stays_as_it_was(action: Action, text: str) -> None:
    redactor = Redactor(action)
    assert redactor.text(text) == text
    verification = _verification(text, text)
    assert redactor.verification(verification) == verification
    refusal = _refusal(text, {"a": [text], "b": {"c": text}})
    assert redactor.refusal(refusal) == refusal


@pytest.mark.parametrize("short", ["a", "ab", "abc", "1"])
def test_a_secret_too_short_to_tell_does_not_eat_the_message(short: str) -> None:
    redactor = Redactor(_action(tool="t", parameters={"password": short}))
    assert redactor.text("abc1 is a cab") == "abc1 is a cab"


def test_an_answer_without_an_error_stays_as_it_was() -> None:
    answer = Answer(decision=Decision.APPROVED)
    assert Redactor(CARRYING["a query"]).refusal(answer) is answer


def test_an_action_with_many_secrets_is_redacted_in_one_pass() -> None:
    secrets = [f"ghp_{number:036}" for number in range(400)]
    redactor = Redactor(_action(tool="t", parameters={"all": secrets}))
    redacted = redactor.text("".join(f"x{secret}" for secret in secrets))
    assert not any(secret in redacted for secret in secrets)
