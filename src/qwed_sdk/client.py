"""QWEDClient and QWEDAsyncClient: every verb of the server, from one definition each."""

from types import TracebackType
from typing import Self

from qwed_sdk.binding import AsyncDriver, SyncDriver, awaited, blocking
from qwed_sdk.calls import agents, engines, messages, people, record


class QWEDClient(SyncDriver):
    """Asks a server; safe in threads and after a fork. What is neither an answer nor a decision raises QWEDError."""

    verify = blocking(engines.verify)
    verify_math = blocking(engines.verify_math)
    verify_logic = blocking(engines.verify_logic)
    verify_code = blocking(engines.verify_code)
    verify_sql = blocking(engines.verify_sql)
    verify_fact = blocking(engines.verify_fact)
    verify_stats = blocking(engines.verify_stats)
    verify_image = blocking(engines.verify_image)
    verify_consensus = blocking(engines.verify_consensus)
    verify_legal = blocking(engines.verify_legal)
    verify_finance = blocking(engines.verify_finance)
    verify_ucp = blocking(engines.verify_ucp)
    verify_tax = blocking(engines.verify_tax)
    verify_batch = blocking(engines.verify_batch)
    get_batch_status = blocking(engines.get_batch_status)

    register_agent = blocking(agents.register_agent)
    get_agent = blocking(agents.get_agent)
    list_agents = blocking(agents.list_agents)
    verify_action = blocking(agents.verify_action)
    verify_tool_call = blocking(agents.verify_tool_call)
    get_action = blocking(agents.get_action)
    wait_for_decision = blocking(agents.wait_for_decision)
    log_execution = blocking(agents.log_execution)
    get_agent_budget = blocking(agents.get_agent_budget)
    get_agent_activity = blocking(agents.get_agent_activity)
    request_trust_change = blocking(agents.request_trust_change)
    reduce_trust = blocking(agents.reduce_trust)
    suspend_agent = blocking(agents.suspend_agent)
    reactivate_agent = blocking(agents.reactivate_agent)
    file_complaint = blocking(agents.file_complaint)
    rotate_token = blocking(agents.rotate_token)
    suspend_all = blocking(agents.suspend_all)
    reactivate_all = blocking(agents.reactivate_all)
    compliance_report = blocking(agents.compliance_report)

    list_approvals = blocking(people.list_approvals)
    get_approval = blocking(people.get_approval)
    approve = blocking(people.approve)
    reject = blocking(people.reject)
    create_organisation = blocking(people.create_organisation)
    create_key = blocking(people.create_key)
    list_keys = blocking(people.list_keys)
    get_own_key = blocking(people.get_own_key)
    revoke_key = blocking(people.revoke_key)
    list_changes = blocking(people.list_changes)
    list_tools = blocking(people.list_tools)
    put_tool = blocking(people.put_tool)
    set_webhook = blocking(people.set_webhook)
    get_webhook = blocking(people.get_webhook)
    delete_webhook = blocking(people.delete_webhook)

    intercept = blocking(messages.intercept)
    a2a_health = blocking(messages.a2a_health)
    a2a_metrics = blocking(messages.a2a_metrics)
    a2a_lists = blocking(messages.a2a_lists)
    block_agent = blocking(messages.block_agent)
    unblock_agent = blocking(messages.unblock_agent)
    block_pair = blocking(messages.block_pair)
    unblock_pair = blocking(messages.unblock_pair)
    trust_agent = blocking(messages.trust_agent)
    revoke_agent = blocking(messages.revoke_agent)

    health = blocking(record.health)
    ready = blocking(record.ready)
    get_jwks = blocking(record.get_jwks)
    verify_attestation = blocking(record.verify_attestation)
    get_attestation = blocking(record.get_attestation)
    revoke_attestation = blocking(record.revoke_attestation)
    rotate_signing_key = blocking(record.rotate_signing_key)
    audit_head = blocking(record.audit_head)
    audit_entries = blocking(record.audit_entries)
    audit_inclusion = blocking(record.audit_inclusion)
    audit_consistency = blocking(record.audit_consistency)
    erase = blocking(record.erase)

    def close(self) -> None:
        """Close the connections; the next verb opens them anew."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class QWEDAsyncClient(AsyncDriver):
    """The same verbs, each an `async def`; with or without `async with`."""

    verify = awaited(engines.verify)
    verify_math = awaited(engines.verify_math)
    verify_logic = awaited(engines.verify_logic)
    verify_code = awaited(engines.verify_code)
    verify_sql = awaited(engines.verify_sql)
    verify_fact = awaited(engines.verify_fact)
    verify_stats = awaited(engines.verify_stats)
    verify_image = awaited(engines.verify_image)
    verify_consensus = awaited(engines.verify_consensus)
    verify_legal = awaited(engines.verify_legal)
    verify_finance = awaited(engines.verify_finance)
    verify_ucp = awaited(engines.verify_ucp)
    verify_tax = awaited(engines.verify_tax)
    verify_batch = awaited(engines.verify_batch)
    get_batch_status = awaited(engines.get_batch_status)

    register_agent = awaited(agents.register_agent)
    get_agent = awaited(agents.get_agent)
    list_agents = awaited(agents.list_agents)
    verify_action = awaited(agents.verify_action)
    verify_tool_call = awaited(agents.verify_tool_call)
    get_action = awaited(agents.get_action)
    wait_for_decision = awaited(agents.wait_for_decision)
    log_execution = awaited(agents.log_execution)
    get_agent_budget = awaited(agents.get_agent_budget)
    get_agent_activity = awaited(agents.get_agent_activity)
    request_trust_change = awaited(agents.request_trust_change)
    reduce_trust = awaited(agents.reduce_trust)
    suspend_agent = awaited(agents.suspend_agent)
    reactivate_agent = awaited(agents.reactivate_agent)
    file_complaint = awaited(agents.file_complaint)
    rotate_token = awaited(agents.rotate_token)
    suspend_all = awaited(agents.suspend_all)
    reactivate_all = awaited(agents.reactivate_all)
    compliance_report = awaited(agents.compliance_report)

    list_approvals = awaited(people.list_approvals)
    get_approval = awaited(people.get_approval)
    approve = awaited(people.approve)
    reject = awaited(people.reject)
    create_organisation = awaited(people.create_organisation)
    create_key = awaited(people.create_key)
    list_keys = awaited(people.list_keys)
    get_own_key = awaited(people.get_own_key)
    revoke_key = awaited(people.revoke_key)
    list_changes = awaited(people.list_changes)
    list_tools = awaited(people.list_tools)
    put_tool = awaited(people.put_tool)
    set_webhook = awaited(people.set_webhook)
    get_webhook = awaited(people.get_webhook)
    delete_webhook = awaited(people.delete_webhook)

    intercept = awaited(messages.intercept)
    a2a_health = awaited(messages.a2a_health)
    a2a_metrics = awaited(messages.a2a_metrics)
    a2a_lists = awaited(messages.a2a_lists)
    block_agent = awaited(messages.block_agent)
    unblock_agent = awaited(messages.unblock_agent)
    block_pair = awaited(messages.block_pair)
    unblock_pair = awaited(messages.unblock_pair)
    trust_agent = awaited(messages.trust_agent)
    revoke_agent = awaited(messages.revoke_agent)

    health = awaited(record.health)
    ready = awaited(record.ready)
    get_jwks = awaited(record.get_jwks)
    verify_attestation = awaited(record.verify_attestation)
    get_attestation = awaited(record.get_attestation)
    revoke_attestation = awaited(record.revoke_attestation)
    rotate_signing_key = awaited(record.rotate_signing_key)
    audit_head = awaited(record.audit_head)
    audit_entries = awaited(record.audit_entries)
    audit_inclusion = awaited(record.audit_inclusion)
    audit_consistency = awaited(record.audit_consistency)
    erase = awaited(record.erase)

    async def close(self) -> None:
        """Close the connections; the next verb opens them anew."""
        await self._transport.close()

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
