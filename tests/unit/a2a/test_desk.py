"""A message in a server: a verdict is given once its leaf is durable, and only to whom has proven to send it."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest

import qwed
from qwed.api import message_shapes
from qwed.engines.verdicts import Question
from qwed.gate import Gate
from qwed.kernel.answer import Problem
from qwed.kernel.case import Credentials
from qwed.kernel.change import GATE, Actor
from qwed.kernel.messages.lists import put_entry
from qwed.kernel.people.organisations import NewKey, add_key
from qwed.kernel.proving.attestations import check
from qwed.ledger.tokens import MESSAGE
from qwed.store.boundary import Entry, ListName
from qwed.store.protocol import StoreError
from qwed.waiting import Ticket, in_thread
from qwed.words import Verdict, canonical
from qwed_a2a import AgentMessage, EngineName, InterceptorConfig, PayloadType, VerdictStatus
from qwed_a2a import desk as desks
from qwed_a2a.desk import Delivered, Desk, config_from
from tests.support.failing import Failing
from tests.support.messages import WRONG, message
from tests.support.workers import shared_verdicts

SECONDS = 30.0


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    with qwed.open() as opened:
        yield opened


def owner(gate: Gate) -> Credentials:
    return Credentials(organisation_id=gate.organisation_id)


def by_owner(gate: Gate) -> Actor:
    return Actor(GATE, gate.organisation_id, "owner")


def asked(gate: Gate, sent: AgentMessage, shown: Credentials | None = None, desk: Desk | None = None) -> Any:
    desk = desk or Desk(gate.services)
    return in_thread(desk.intercept(sent, shown or owner(gate)), SECONDS)


def delivered(gate: Gate, sent: AgentMessage, **how: Any) -> Delivered:
    found = asked(gate, sent, **how)
    assert isinstance(found, Delivered), found
    return found


def test_the_words_of_the_api_document_are_those_of_the_room() -> None:
    assert set(get_args(message_shapes.PayloadType)) == set(PayloadType)
    assert set(get_args(message_shapes.EngineName)) == set(EngineName)
    told = message_shapes.VerdictView.__annotations__["status"]
    assert set(get_args(told)) == set(VerdictStatus)
    assert set(message_shapes.MessageShape.__struct_fields__) == set(AgentMessage.model_fields)


def test_a_server_starts_without_loading_what_only_messages_need() -> None:
    look = "import sys, qwed.api.app, qwed.cli.app; print(sorted({'pydantic', 'qwed_a2a'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_what_an_operator_has_set_is_what_the_desk_holds_to() -> None:
    with qwed.open(a2a_max_payload_bytes=2_048, a2a_block_on_error=False) as gate:
        config = config_from(gate.services.settings)
        assert config == InterceptorConfig(max_payload_size_bytes=2_048, block_on_error=False)
        found = asked(gate, message({"text": "x" * 2_048}))
    assert isinstance(found, Problem)
    assert found.code == "QWED-REQ-002"


@pytest.mark.parametrize("registered", [True, False])
def test_no_verdict_is_given_where_none_could_be_kept(gate: Gate, registered: bool) -> None:
    sender = gate.register_agent(name="x", principal_id="u").agent_id if registered else "buyer"
    store = Failing(gate.services.store, "settle" if registered else "change", StoreError("the disk is full"))
    desk = Desk(replace(gate.services, store=store))  # type: ignore[arg-type]  # the real one behind it
    found = asked(gate, message(sender_agent_id=sender), desk=desk)
    assert isinstance(found, Problem)
    assert (found.code, found.retry_after) == ("QWED-SYS-002", 1)
    assert desk.metrics_of(gate.organisation_id).snapshot()["total_intercepts"] == 0


def test_a_sender_that_is_trusted_while_its_message_is_on_its_way_does_not_bypass_unproven(gate: Gate) -> None:
    made = gate.services
    key = _member_key(gate)
    bad = message(WRONG["code_execution"], "code_execution", sender_agent_id="late friend")

    def trust(stage: str) -> None:
        if stage == "judge":
            in_thread(put_entry(Entry(ListName.TRUSTED, "late friend"), by_owner(gate), made), SECONDS)

    desk = Desk(replace(made, at_stage=trust))
    found = delivered(gate, bad, shown=Credentials(api_key=key), desk=desk)
    assert made.store.boundary(gate.organisation_id).trusts("late friend")
    assert (found.verdict.status, found.verdict.engine_used) == (VerdictStatus.BLOCKED, EngineName.CODE_GUARD)


def _member_key(gate: Gate) -> str:
    made = in_thread(add_key("m", "member", by_owner(gate), gate.services), SECONDS)
    assert isinstance(made, NewKey)
    return made.text


def test_agents_that_the_configuration_trusts_bypass_too_where_they_are_proven(gate: Gate) -> None:
    desk = Desk(gate.services, InterceptorConfig(trusted_agents=["known"]))
    bad = message(WRONG["code_execution"], "code_execution", sender_agent_id="known")
    assert delivered(gate, bad, desk=desk).verdict.engine_used is EngineName.BYPASS
    unproven = Credentials(api_key=_member_key(gate))
    assert delivered(gate, bad, desk=desk, shown=unproven).verdict.engine_used is EngineName.CODE_GUARD


def test_the_numbers_of_organisations_take_bounded_room(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desks, "MOST_ORGANISATIONS", 2)
    desk = Desk(gate.services)
    first = desk.metrics_of("one")
    desk.metrics_of("two")
    assert desk.metrics_of("one") is first
    desk.metrics_of("three")
    assert desk.metrics_of("one") is first
    assert len(desk._metrics) == 2


def test_a_verdict_is_counted_for_the_organisation_it_was_given_in(gate: Gate) -> None:
    desk = Desk(gate.services)
    delivered(gate, message(), desk=desk)
    assert desk.metrics_of(gate.organisation_id).snapshot()["by_engine"] == {"passthrough": 1}
    assert desk.metrics_of("another").snapshot()["total_intercepts"] == 0


class _Noting:
    """The engines, and on whose behalf they were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, question: Question) -> Verdict | Ticket[Verdict]:
        self.asked.append(question.agent_id)
        return shared_verdicts().ask(question)


def test_engines_are_shared_out_among_agents_and_those_who_are_nobody_share_the_turn_of_their_house(gate: Gate) -> None:
    agent, noting = gate.register_agent(name="x", principal_id="u").agent_id, _Noting()
    desk = Desk(replace(gate.services, engines=noting))  # type: ignore[arg-type]  # the real ones behind it
    script = {"code": "const total = 1 + 1;", "language": "javascript"}
    for name in (agent, "buyer", "Somebody else"):
        assert delivered(gate, message(script, "code_execution", sender_agent_id=name), desk=desk).verdict.forwarded
    assert noting.asked == [agent, gate.organisation_id, gate.organisation_id]


# An attestation against the log


def claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    read: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return read


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """With a log: what is in memory alone has no heads."""
    with qwed.open(tmp_path_factory.mktemp("kept") / "data") as opened:
        yield opened


@pytest.fixture(scope="module", params=["registered", "nobody"])
def attested(request: pytest.FixtureRequest, kept: Gate) -> str:
    name = kept.register_agent(name="x", principal_id="u").agent_id if request.param == "registered" else "buyer"
    token = delivered(kept, message(sender_agent_id=name)).verdict.attestation_jwt
    assert token is not None
    return token


def test_what_was_given_holds(kept: Gate, attested: str) -> None:
    found = check(attested, kept.services)
    assert (found.valid, found.error) == (True, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jti", "a2a_000000000000"),
        ("iat", 1_700_000_000),
        ("sub", "sha256:" + "0" * 64),
        ("qwed_a2a.verdict", "blocked"),
        ("qwed_a2a.engine", "code_guard"),
        ("qwed_a2a.sender", "somebody else"),
        ("qwed_a2a.receiver", "somebody else"),
        ("qwed_a2a.activity_id", "act_00000000000000000000000000"),
        ("qwed_a2a.activity_id", None),
    ],
)
def test_what_our_key_signs_and_the_log_does_not_bear_out_is_tampering(
    kept: Gate, attested: str, name: str, value: Any
) -> None:
    claims = claims_of(attested)
    place, member = (claims["qwed_a2a"], name.split(".")[1]) if "." in name else (claims, name)
    place.pop(member)
    if value is not None:
        place[member] = value
    forged = kept.services.signer.keyring.current.sign(MESSAGE, canonical(claims))
    found = check(forged, kept.services)
    assert found.error is not None
    assert (found.valid, found.error.code) == (False, "QWED-SEC-003")


def test_another_activity_of_ours_is_no_message(kept: Gate, attested: str) -> None:
    agent = kept.register_agent(name="y", principal_id="u").agent_id
    place = {"conversation_id": "c", "step_number": 1}
    asked = kept.verify_action(agent, {"type": "calculate", "query": "1 + 1 = 2"}, place)
    claims = claims_of(attested)
    claims["qwed_a2a"]["activity_id"] = asked.action_id
    forged = kept.services.signer.keyring.current.sign(MESSAGE, canonical(claims))
    found = check(forged, kept.services)
    assert found.error is not None
    assert found.error.message == "it is signed with our key, and the log has no such message"


def _block(gate: Gate, sender: str) -> None:
    gate.block_pair(sender, "seller")


def _suspend(gate: Gate, sender: str) -> None:
    gate.suspend_agent(sender, reason="odd")


def _tell_twice(gate: Gate, sender: str) -> None:
    for _ in range(2):
        delivered(gate, message(sender_agent_id=sender, metadata={"conversation_id": "c"}))


def _use_up(gate: Gate, sender: str) -> None:
    delivered(gate, message(sender_agent_id=sender))


def _wrong(_gate: Gate, _sender: str) -> None:
    """Nothing stands against the sender."""


REFUSED: list[tuple[Callable[[Gate, str], None], dict[str, Any]]] = [
    (_block, {}),
    (_suspend, {}),
    (_tell_twice, {"metadata": {"conversation_id": "c"}}),
    (_tell_twice, {"metadata": {"conversation_id": "c", "step_number": 1}}),
    (_use_up, {}),
    (_wrong, {"payload": WRONG["code_execution"], "kind": "code_execution"}),
]


@pytest.mark.parametrize(("against", "said"), REFUSED)
@pytest.mark.parametrize("per_minute", [0, 1])
def test_whatever_refused_a_message_and_however_often_the_log_bears_it_out(
    kept: Gate, against: Callable[[Gate, str], None], said: dict[str, Any], per_minute: int
) -> None:
    limits = {"max_requests_per_hour": 1 if against is _use_up else 100}
    sender = kept.register_agent(name="x", principal_id="u", budget=limits).agent_id
    against(kept, sender)
    limited = replace(kept.services, settings=replace(kept.services.settings, a2a_messages_per_minute=per_minute))
    for _ in range(3):
        found = delivered(kept, message(sender_agent_id=sender, **said), desk=Desk(limited)).verdict
        assert found.status is VerdictStatus.BLOCKED
        assert check(found.attestation_jwt or "", kept.services).error is None


def test_a_flood_in_many_spellings_is_one_leaf_and_each_refusal_is_borne_out(kept: Gate) -> None:
    limited = replace(kept.services, settings=replace(kept.services.settings, a2a_messages_per_minute=1))
    names = ["flooder", "Flooder", "FLOODER", "flooder ", "fl\u200booder"]
    found = [delivered(kept, message(sender_agent_id=name), desk=Desk(limited)) for name in names]
    assert [each.verdict.forwarded for each in found] == [True, False, False, False, False]
    assert len({each.activity_id for each in found}) == 2
    assert all(check(each.verdict.attestation_jwt or "", kept.services).valid for each in found)
