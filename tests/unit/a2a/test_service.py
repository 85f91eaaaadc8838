"""Message service: a verdict is given once its leaf is durable, and only to an authenticated sender."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest

import qwed
from qwed.api.handlers import a2a
from qwed.domain.access_lists import ListEntry, ListName
from qwed.engines.verdict_cache import VerdictRequest
from qwed.futures import Future, run_in_thread
from qwed.gate import Gate
from qwed.kernel.a2a.access_lists import put_entry
from qwed.kernel.admin.organisations import NewKey, add_key
from qwed.kernel.answer import Problem
from qwed.kernel.audit.attestation_check import check_attestation
from qwed.kernel.audit_change import GATE, Actor
from qwed.kernel.case import Credentials
from qwed.ledger.attestation_verifier import MESSAGE
from qwed.model import Verdict, canonical
from qwed.store.protocol import StoreError
from qwed_a2a import AgentMessage, EngineName, InterceptorConfig, PayloadType, VerdictStatus
from qwed_a2a import service as service_module
from qwed_a2a.service import InterceptorService, RecordedVerdict, config_from
from tests.support.a2a_messages import WRONG, message
from tests.support.agent_names import unique_name
from tests.support.fault_injection import FailingProxy
from tests.support.shared_engine_workers import shared_verdicts

SECONDS = 30.0


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    with qwed.open() as opened:
        yield opened


def owner(gate: Gate) -> Credentials:
    return Credentials(organisation_id=gate.organisation_id)


def by_owner(gate: Gate) -> Actor:
    return Actor(GATE, gate.organisation_id, "owner")


def intercept(
    gate: Gate, sent: AgentMessage, credentials: Credentials | None = None, service: InterceptorService | None = None
) -> Any:
    service = service or InterceptorService(gate.services)
    return run_in_thread(service.intercept(sent, credentials or owner(gate)), SECONDS)


def record(gate: Gate, sent: AgentMessage, **options: Any) -> RecordedVerdict:
    recordedt = intercept(gate, sent, **options)
    assert isinstance(recordedt, RecordedVerdict), recordedt
    return recordedt


def test_the_enums_of_the_api_document_are_those_of_the_package() -> None:
    assert set(get_args(a2a.PayloadType)) == set(PayloadType)
    assert set(get_args(a2a.EngineName)) == set(EngineName)
    annotation = a2a.VerdictView.__annotations__["status"]
    assert set(get_args(annotation)) == set(VerdictStatus)
    assert set(a2a.MessageRequest.__struct_fields__) == set(AgentMessage.model_fields)


def test_a_server_starts_without_loading_what_only_messages_need() -> None:
    program = "import sys, qwed.api.app, qwed.cli.app; print(sorted({'pydantic', 'qwed_a2a'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_the_service_uses_the_settings_of_the_operator() -> None:
    with qwed.open(a2a_max_payload_bytes=2_048, a2a_block_on_error=False) as gate:
        config = config_from(gate.services.settings)
        assert config == InterceptorConfig(max_payload_size_bytes=2_048, block_on_error=False, verify_untyped=True)
        result = intercept(gate, message({"text": "x" * 2_048}))
    assert isinstance(result, Problem)
    assert result.code == "QWED-REQ-002"


@pytest.mark.parametrize("registered", [True, False])
def test_no_verdict_is_given_where_none_could_be_kept(gate: Gate, registered: bool) -> None:
    sender = gate.register_agent(name=unique_name(), principal_id="u").agent_id if registered else "buyer"
    store = FailingProxy(gate.services.store, "commit", StoreError("the disk is full"))
    service = InterceptorService(replace(gate.services, store=store))  # type: ignore[arg-type]  # the real one behind it
    result = intercept(gate, message(sender_agent_id=sender), service=service)
    assert isinstance(result, Problem)
    assert (result.code, result.retry_after) == ("QWED-SYS-002", 1)
    assert service.metrics_of(gate.organisation_id).snapshot()["total_intercepts"] == 0


def test_a_sender_that_is_trusted_while_its_message_is_on_its_way_does_not_bypass_unproven(gate: Gate) -> None:
    created = gate.services
    key = _member_key(gate)
    bad = message(WRONG["code_execution"], "code_execution", sender_agent_id="late friend")

    def trust(stage: str) -> None:
        if stage == "judge":
            run_in_thread(put_entry(ListEntry(ListName.TRUSTED, "late friend"), by_owner(gate), created), SECONDS)

    service = InterceptorService(replace(created, at_stage=trust))
    result = record(gate, bad, credentials=Credentials(api_key=key), service=service)
    assert created.store.access_lists(gate.organisation_id).trusts("late friend")
    assert (result.verdict.status, result.verdict.engine_used) == (VerdictStatus.BLOCKED, EngineName.CODE_GUARD)


def _member_key(gate: Gate) -> str:
    created = run_in_thread(add_key("m", "member", by_owner(gate), gate.services), SECONDS)
    assert isinstance(created, NewKey)
    return created.text


def test_agents_that_the_configuration_trusts_bypass_too_where_they_are_proven(gate: Gate) -> None:
    service = InterceptorService(gate.services, InterceptorConfig(trusted_agents=["known"]))
    bad = message(WRONG["code_execution"], "code_execution", sender_agent_id="known")
    assert record(gate, bad, service=service).verdict.engine_used is EngineName.BYPASS
    unproven = Credentials(api_key=_member_key(gate))
    assert record(gate, bad, service=service, credentials=unproven).verdict.engine_used is EngineName.CODE_GUARD


def test_the_numbers_of_organisations_take_bounded_room(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "MAX_ORGANISATIONS", 2)
    service = InterceptorService(gate.services)
    first = service.metrics_of("one")
    second = service.metrics_of("two")
    assert service.metrics_of("one") is first
    third = service.metrics_of("three")
    assert service.metrics_of("one") is first
    assert service.metrics_of("three") is third
    assert service.metrics_of("two") is not second


def test_a_verdict_is_counted_for_the_organisation_it_was_given_in(gate: Gate) -> None:
    service = InterceptorService(gate.services)
    record(gate, message(), service=service)
    assert service.metrics_of(gate.organisation_id).snapshot()["by_engine"] == {"passthrough": 1}
    assert service.metrics_of("another").snapshot()["total_intercepts"] == 0


class _RecordingEngines:
    """Engines that record their owners."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, question: VerdictRequest) -> Verdict | Future[Verdict]:
        self.asked.append(question.agent_id)
        return shared_verdicts().ask(question)


def test_engines_are_shared_between_agents_and_unregistered_senders_share_the_turn_of_their_organisation(
    gate: Gate,
) -> None:
    agent, engines = gate.register_agent(name=unique_name(), principal_id="u").agent_id, _RecordingEngines()
    service = InterceptorService(replace(gate.services, engines=engines))  # type: ignore[arg-type]  # the real ones behind it
    script = {"code": "const total = 1 + 1;", "language": "javascript"}
    for name in (agent, "buyer", "Somebody else"):
        assert record(gate, message(script, "code_execution", sender_agent_id=name), service=service).verdict.forwarded
    assert engines.asked == [agent, gate.organisation_id, gate.organisation_id]


# An attestation against the log


def claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    read: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return read


@pytest.fixture(scope="module")
def durable_gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """Gate with a log on disk: an in-memory one has no heads."""
    with qwed.open(tmp_path_factory.mktemp("durable_gate") / "data") as opened:
        yield opened


@pytest.fixture(scope="module", params=["registered", "nobody"])
def attested(request: pytest.FixtureRequest, durable_gate: Gate) -> str:
    name = (
        durable_gate.register_agent(name=unique_name(), principal_id="u").agent_id
        if request.param == "registered"
        else "buyer"
    )
    token = record(durable_gate, message(sender_agent_id=name)).verdict.attestation_jwt
    assert token is not None
    return token


def test_what_was_given_holds(durable_gate: Gate, attested: str) -> None:
    result = check_attestation(attested, durable_gate.services)
    assert (result.valid, result.error) == (True, None)


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
    durable_gate: Gate, attested: str, name: str, value: Any
) -> None:
    claims = claims_of(attested)
    target, member = (claims["qwed_a2a"], name.split(".")[1]) if "." in name else (claims, name)
    target.pop(member)
    if value is not None:
        target[member] = value
    forged = durable_gate.services.signer.keyring.current.sign(MESSAGE, canonical(claims))
    result = check_attestation(forged, durable_gate.services)
    assert result.error is not None
    assert (result.valid, result.error.code) == (False, "QWED-SEC-003")


def test_another_activity_of_ours_is_no_message(durable_gate: Gate, attested: str) -> None:
    agent = durable_gate.register_agent(name=unique_name(), principal_id="u").agent_id
    context = {"conversation_id": "c", "step_number": 1}
    decision = durable_gate.verify_action(agent, {"type": "calculate", "query": "1 + 1 = 2"}, context)
    claims = claims_of(attested)
    claims["qwed_a2a"]["activity_id"] = decision.action_id
    forged = durable_gate.services.signer.keyring.current.sign(MESSAGE, canonical(claims))
    result = check_attestation(forged, durable_gate.services)
    assert result.error is not None
    assert result.error.message == "the token is signed with our key, but the log has no such message"


def _block(gate: Gate, sender: str) -> None:
    gate.block_pair(sender, "seller")


def _suspend(gate: Gate, sender: str) -> None:
    gate.suspend_agent(sender, reason="odd")


def _send_twice(gate: Gate, sender: str) -> None:
    for _ in range(2):
        record(gate, message(sender_agent_id=sender, metadata={"conversation_id": "c"}))


def _use_up_budget(gate: Gate, sender: str) -> None:
    record(gate, message(sender_agent_id=sender))


def _no_setup(_gate: Gate, _sender: str) -> None:
    """Leave the sender as it is."""


REFUSED: list[tuple[Callable[[Gate, str], None], dict[str, Any]]] = [
    (_block, {}),
    (_suspend, {}),
    (_send_twice, {"metadata": {"conversation_id": "c"}}),
    (_send_twice, {"metadata": {"conversation_id": "c", "step_number": 1}}),
    (_use_up_budget, {}),
    (_no_setup, {"payload": WRONG["code_execution"], "kind": "code_execution"}),
]


@pytest.mark.parametrize(("setup", "fields"), REFUSED)
@pytest.mark.parametrize("per_minute", [0, 1])
def test_whatever_refused_a_message_and_however_often_the_log_bears_it_out(
    durable_gate: Gate, setup: Callable[[Gate, str], None], fields: dict[str, Any], per_minute: int
) -> None:
    limits = {"max_requests_per_hour": 1 if setup is _use_up_budget else 100}
    sender = durable_gate.register_agent(name=unique_name(), principal_id="u", budget=limits).agent_id
    setup(durable_gate, sender)
    limited = replace(
        durable_gate.services, settings=replace(durable_gate.services.settings, a2a_messages_per_minute=per_minute)
    )
    for _ in range(3):
        result = record(
            durable_gate, message(sender_agent_id=sender, **fields), service=InterceptorService(limited)
        ).verdict
        assert result.status is VerdictStatus.BLOCKED
        assert check_attestation(result.attestation_jwt or "", durable_gate.services).error is None


def test_a_flood_in_many_spellings_is_one_leaf_and_each_refusal_is_borne_out(durable_gate: Gate) -> None:
    limited = replace(
        durable_gate.services, settings=replace(durable_gate.services.settings, a2a_messages_per_minute=1)
    )
    names = ["flooder", "Flooder", "FLOODER", "flooder ", "fl\u200booder"]
    result = [
        record(durable_gate, message(sender_agent_id=name), service=InterceptorService(limited)) for name in names
    ]
    assert [item.verdict.forwarded for item in result] == [True, False, False, False, False]
    assert len({item.activity_id for item in result}) == 2
    assert all(check_attestation(item.verdict.attestation_jwt or "", durable_gate.services).valid for item in result)
