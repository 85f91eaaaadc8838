"""State machine of decisions, approvals, expiry, suspension, trust, keys, erasure and restart against a model.

The model is written from the specification alone. Every rule calls both; after every rule all their counters are
compared.
"""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from tests.property.model import ModelAnswer
from tests.property.state_machine import (
    ACTIONS,
    AGENT,
    BETWEEN_ERASURES,
    BETWEEN_RESTARTS,
    BOTH,
    HONEST,
    LIMITS,
    MOST_AGENTS,
    MOST_KEYS,
    OLD_TOKEN,
    PICK,
    REASON,
    STATES,
    TALK,
    TOKEN,
    Limits,
    Machine,
)
from tests.support.campaign_table import Figure, campaign
from tests.support.polling import until


class Protocol(Machine):
    """Rules: everything that an agent, a person or time can do."""

    @precondition(lambda self: len(self.secrets) < MOST_KEYS)
    @rule(by=PICK, role=st.sampled_from(["owner", "approver", "member"]))
    def add_key(self, by: int, role: str) -> None:
        self._add_key(role, self._key(by))

    @rule(pick=PICK, by=PICK)
    def revoke_key(self, pick: int, by: int) -> None:
        self._revoke(self._key(pick), self._key(by))

    @precondition(lambda self: len(self.ids) < MOST_AGENTS)
    @rule(by=PICK, limits=LIMITS)
    def register(self, by: int, limits: Limits) -> None:
        self._register(self._key(by), *limits)

    @rule(
        agent=AGENT,
        pick=PICK,
        how=st.sampled_from([TOKEN, TOKEN, OLD_TOKEN, "key", BOTH]),
        names=st.lists(st.sampled_from(sorted(ACTIONS)), min_size=1, max_size=8),
        thread=TALK,
        ahead=st.sampled_from([1, 1, 1, 1, 1, 0, -1, 2, 49]),
        state=st.none() | st.sampled_from(STATES),
        cents=st.sampled_from([0, 0, 1, 3]),
        tokens=st.sampled_from([0, 0, 7]),
    )
    def verify(
        self,
        agent: int,
        pick: int,
        how: str,
        names: list[str],
        thread: str,
        ahead: int,
        state: str | None,
        cents: int,
        tokens: int,
    ) -> None:
        """Send several requests in a row: recent conduct counts."""
        self._verify(agent, pick, how, names, thread, ahead, state, cents, tokens)

    @rule(agent=AGENT, names=st.lists(st.sampled_from(HONEST), min_size=4, max_size=12), thread=TALK)
    def work_honestly(self, agent: int, names: list[str], thread: str) -> None:
        self._verify(agent, 0, TOKEN, names, thread, 1, None, 0, 0)

    @rule(agent=AGENT, names=st.sampled_from([["attack"], ["attack", "delete"], ["claim", "read", "broken"] * 8]))
    def misbehave(self, agent: int, names: list[str]) -> None:
        self._verify(agent, 0, TOKEN, names, f"bad {len(self.action_ids[agent])}", 1, None, 0, 0)

    @rule(agent=AGENT, name=st.sampled_from(["sum", "read", "mail", "broken"]), again=st.sampled_from(["r1", "r2"]))
    def retry_with_a_key(self, agent: int, name: str, again: str) -> None:
        """Evaluate the first request of a key; later ones return the stored answer and cost nothing (ruling 4.7)."""
        model, place = self.organisation.agents[agent], (self.ids[agent], again)
        shown, by, _ = self._credential(agent, TOKEN, 0)
        shown["Idempotency-Key"] = again
        if model.active and self._remembers(place):
            arguments, before, _ = self.stored[place]
            assert self._ask(agent, *arguments, headers=shown).body == before
            return
        action_case, _action = ACTIONS[name]
        step = model.talks["keyed"].last + 1 if "keyed" in model.talks else 1
        arguments = (name, "keyed", step, None, 0, 0)
        told = self._ask(agent, *arguments, headers=shown)
        expected = model.ask(action_case, "keyed", step, None, 0, 0, by)
        self._same(told, expected)
        self._remember(agent, told)
        if expected.judged:
            self.stored[place] = (arguments, told.body, self.organisation.now)

    @rule(agent=AGENT, again=st.sampled_from(["r1", "r2"]))
    def a_key_with_another_body_is_refused(self, agent: int, again: str) -> None:
        model = self.organisation.agents[agent]
        if self._remembers((self.ids[agent], again)):
            shown = self._credential(agent, TOKEN, 0)[0] | {"Idempotency-Key": again}
            told = self._ask(agent, "claim", "keyed", 50, None, 0, 0, shown)
            self._same(told, model.refuse("DENIED", "QWED-REQ-006" if model.active else "QWED-AGENT-003"))
            self._remember(agent, told)

    @rule(agent=AGENT)
    def a_stranger_changes_nothing(self, agent: int) -> None:
        shown = {"Authorization": "Bearer qwed_agent_" + "0" * 52}
        self._same(self._ask(agent, "sum", "one", 50, None, 0, 0, shown), ModelAnswer("DENIED", "QWED-AGENT-002"))

    @rule(agent=AGENT)
    def a_request_without_context_is_recorded_and_costs_nothing(self, agent: int) -> None:
        model = self.organisation.agents[agent]
        body = {"action": ACTIONS["sum"][1]}
        told = self.door.ask("POST", f"/agents/{self.ids[agent]}/verify", body, self._credential(agent, TOKEN, 0)[0])
        self._same(told, model.refuse("DENIED", "QWED-AGENT-CTX-001" if model.active else "QWED-AGENT-003"))
        self._remember(agent, told)

    @rule(agent=AGENT, pick=PICK, how=st.sampled_from(["key", TOKEN]))
    def ask_a_person(self, agent: int, pick: int, how: str) -> None:
        """Send an action that the matrix leaves to a person, at any trust level."""
        name = ("sum", "mail", "write", "careful")[self.organisation.agents[agent].trust]
        self._verify(agent, pick, how, [name], f"for people {len(self.approval_ids)}", 1, None, 0, 0)

    @rule(agent=AGENT, pick=PICK)
    def approve_ones_own_request(self, agent: int, pick: int) -> None:
        self.ask_a_person(agent, pick, "key")
        if self.organisation.approvals:
            self._resolve(0, pick, "approve", self.organisation.approve)

    @precondition(lambda self: len(self.organisation.approvals) > 4)
    @rule(agent=AGENT)
    def approve_ones_own_request_alone(self, agent: int) -> None:
        """Approve with the requesting key if there is no other."""
        owner = self._owner()
        for pick in range(len(self.secrets)):
            key = f"key {pick}"
            if key != owner and key not in self.organisation.revoked:
                self._revoke(key, owner)
        self.everyone_goes_on()
        self.approve_ones_own_request(agent, 0)

    @rule(agent=AGENT, approver=PICK, names=st.permutations(["sum", "claim", "read", "wrong"]))
    def earn_trust(self, agent: int, approver: int, names: list[str]) -> None:
        """Work for a good day, and approve a trust request."""
        self.everyone_goes_on()
        self.time_passes(25 * 3_600)
        self._verify(agent, 0, TOKEN, names, f"good day {len(self.action_ids[agent])}", 1, None, 0, 0)
        self.request_trust(agent, 0, TOKEN, 1)
        if self.organisation.approvals:
            self._resolve(0, approver, "approve", self.organisation.approve)

    @precondition(lambda self: self.organisation.approvals)
    @rule(which=st.integers(0, 3), pick=PICK)
    def approve(self, which: int, pick: int) -> None:
        self._resolve(which, pick, "approve", self.organisation.approve)

    @precondition(lambda self: self.organisation.approvals)
    @rule(which=st.integers(0, 3), pick=PICK)
    def reject(self, which: int, pick: int) -> None:
        self._resolve(which, pick, "reject", self.organisation.reject)

    @rule(agent=AGENT, pick=PICK, how=st.sampled_from([TOKEN, "key", OLD_TOKEN]), more=st.sampled_from([1, 1, 1, 0, 2]))
    def request_trust(self, agent: int, pick: int, how: str, more: int) -> None:
        model = self.organisation.agents[agent]
        shown, by, refusal = self._credential(agent, how, pick)
        to = model.trust + more
        expected = refusal or self.organisation.request_trust(model, to, by)
        body = {"to_level": to, "justification": "it went well", "evidence": {"days_active": 999}}
        told = self._agree(self.door.ask("POST", f"/agents/{self.ids[agent]}/trust", body, shown), expected)
        if expected is None:
            self.approval_ids.append(told.body["approval_id"])
            assert told.body["evidence"] == model.evidence()
        elif "evidence" in (told.body["error"].get("details") or {}):
            assert told.body["error"]["details"]["evidence"] == model.evidence()

    @rule(agent=AGENT, pick=PICK, to=st.integers(0, 2))
    def reduce_trust(self, agent: int, pick: int, to: int) -> None:
        key = self._key(pick)
        expected = self.organisation.reduce_trust(self.organisation.agents[agent], to, key)
        body = {"request": "trust_reduction", "to_level": to}
        self._agree(self.door.ask("POST", f"/agents/{self.ids[agent]}/trust", body, self._with(key)), expected)

    @rule(agent=AGENT, pick=PICK, verb=st.sampled_from(["suspend", "complaint"]))
    def stop(self, agent: int, pick: int, verb: str) -> None:
        key = self._key(pick)
        event = {"suspend": "suspended"}.get(verb, verb)
        expected = self.organisation.stop(self.organisation.agents[agent], event, key)
        self._agree(self.door.ask("POST", f"/agents/{self.ids[agent]}/{verb}", REASON, self._with(key)), expected)
        self.request_trust(agent, pick, TOKEN, 1)

    @rule(agent=AGENT, pick=PICK)
    def reactivate(self, agent: int, pick: int) -> None:
        self._reactivate(agent, self._key(pick))

    @rule()
    def everyone_goes_on(self) -> None:
        """Release the kill switch as an owner, so that a campaign does not stall."""
        owner = self._owner()
        self._halt(owner, False)
        for agent in range(len(self.ids)):
            self._reactivate(agent, owner)

    @rule(agent=AGENT, pick=PICK)
    def rotate_token(self, agent: int, pick: int) -> None:
        key = self._key(pick)
        expected = self.organisation.rotate(self.organisation.agents[agent], key)
        path = f"/agents/{self.ids[agent]}/rotate-token"
        told = self._agree(self.door.ask("POST", path, headers=self._with(key)), expected)
        if expected is None:
            self.tokens[agent].append(told.body["agent_token"])

    @rule(pick=PICK, halt=st.sampled_from([False, False, False, True]))
    def halt(self, pick: int, halt: bool) -> None:
        self._halt(self._key(pick), halt)

    @precondition(lambda self: any(self.action_ids))
    @rule(agent=AGENT, which=st.integers(0, 9), pick=PICK, how=st.sampled_from([TOKEN, "key", OLD_TOKEN]))
    def log_execution(self, agent: int, which: int, pick: int, how: str) -> None:
        model = self.organisation.agents[agent]
        if not model.actions:
            return
        place = -1 - which % len(model.actions)
        action, action_id = model.actions[place], self.action_ids[agent][place]
        shown, by, refusal = self._credential(agent, how, pick)
        expected = refusal or self.organisation.execute(model, action, by)
        path = f"/agents/{self.ids[agent]}/actions/{action_id}"
        self._agree(self.door.ask("POST", f"{path}/execution", {"success": True}, shown), expected)
        seen = self.door.look.get_action(self.ids[agent], action_id)
        # A stopped agent sees no permission, whatever it had before.
        stopped = not model.active and action.now in ("APPROVED", "CORRECTED")
        now = "DENIED" if stopped else action.now
        assert (seen["decision"], seen["first_decision"]) == (now, action.first)
        assert (seen["execution"] is not None) is action.executed
        state = None if action.waiting is None else action.waiting.state
        assert (seen["approval"] or {}).get("state") == state

    @rule(seconds=st.sampled_from([600, 3_600, 25 * 3_600]))
    def time_passes(self, seconds: int) -> None:
        self.organisation.pass_time(seconds)
        # Expiries are written without waiting, so they are on disk a moment after the first read.
        until(self._is_settled)

    @precondition(lambda self: self.since_erasure > BETWEEN_ERASURES)
    @rule(pick=PICK)
    def erase(self, pick: int) -> None:
        """Erase content; decisions, costs, reservations and executions stay (DESIGN 7)."""
        self._erase(self._key(pick))

    @precondition(lambda self: self.since_restart > BETWEEN_RESTARTS)
    @rule()
    def restart(self) -> None:
        self.door.close()
        self.door = self._open()
        self.since_restart = 0


MUST_BE_MET = (
    *("approved", "rejected", "expired", "suspended", "complaint", "reactivated", "token_rotated", "self_approved"),
    *("trust_requested", "trust_raised", "trust_lowered", "executed", "executed_unpermitted", "erased"),
    *("security_policy_violation", "budget_abuse"),
    *("refused QWED-AUTH-002", "refused QWED-AUTH-003", "refused QWED-AUTH-004", "refused QWED-REQ-009"),
    *("refused QWED-AGENT-002", "refused QWED-AGENT-003", "refused QWED-REQ-005", "DENIED QWED-AGENT-003"),
    *("APPROVED None", "CORRECTED None", "PENDING QWED-AGENT-TRUST-002", "DENIED QWED-AGENT-TRUST-002"),
)
"""Events that a campaign must reach to prove anything about them."""


def _play(examples: int, *, by_lot: bool) -> None:
    run_state_machine_as_test(
        Protocol,
        settings=settings(
            max_examples=examples,
            stateful_step_count=100,
            deadline=None,
            derandomize=not by_lot,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # a failure prints its steps; shrinking them takes longer than reading them
        ),
    )


def _begin() -> None:
    Machine.steps_played = 0
    Machine.met.clear()


def _unmet() -> list[str]:
    return [name for name in MUST_BE_MET if not Machine.met[name]]


def test_2500_steps_show_no_difference_to_the_model() -> None:
    _begin()
    _play(48, by_lot=False)
    assert Machine.steps_played >= 2_500
    assert _unmet() == []


@pytest.mark.drill
@campaign("P1 P2 P3 P10", "random walks beside a model")
def test_100000_steps_show_no_difference_to_the_model(figure: Figure) -> None:
    _begin()
    while Machine.steps_played < 100_000:
        _play(200, by_lot=True)
    figure("steps", Machine.steps_played)
    assert _unmet() == []
