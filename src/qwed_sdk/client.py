"""QWEDClient and QWEDAsyncClient: every operation of the server as a method."""

from types import TracebackType
from typing import Self

from qwed_sdk.operations import a2a, admin, agents, audit, engines
from qwed_sdk.sync_async import AsyncDriver, SyncDriver, async_method, sync_method


class QWEDClient(SyncDriver):
    """Blocking client of a server; safe to share between threads, and after a fork.

    A refusal is returned as a decision. Everything else that is not an answer raises a QWEDError.
    """

    verify = sync_method(engines.verify)
    verify_math = sync_method(engines.verify_math)
    verify_logic = sync_method(engines.verify_logic)
    verify_code = sync_method(engines.verify_code)
    verify_sql = sync_method(engines.verify_sql)
    verify_fact = sync_method(engines.verify_fact)
    verify_stats = sync_method(engines.verify_stats)
    verify_image = sync_method(engines.verify_image)
    verify_consensus = sync_method(engines.verify_consensus)
    verify_legal = sync_method(engines.verify_legal)
    verify_finance = sync_method(engines.verify_finance)
    verify_ucp = sync_method(engines.verify_ucp)
    verify_tax = sync_method(engines.verify_tax)
    verify_batch = sync_method(engines.verify_batch)
    get_batch_status = sync_method(engines.get_batch_status)

    register_agent = sync_method(agents.register_agent)
    get_agent = sync_method(agents.get_agent)
    list_agents = sync_method(agents.list_agents)
    verify_action = sync_method(agents.verify_action)
    verify_tool_call = sync_method(agents.verify_tool_call)
    get_action = sync_method(agents.get_action)
    wait_for_decision = sync_method(agents.wait_for_decision)
    log_execution = sync_method(agents.log_execution)
    get_agent_budget = sync_method(agents.get_agent_budget)
    get_agent_activity = sync_method(agents.get_agent_activity)
    request_trust_change = sync_method(agents.request_trust_change)
    reduce_trust = sync_method(agents.reduce_trust)
    suspend_agent = sync_method(agents.suspend_agent)
    reactivate_agent = sync_method(agents.reactivate_agent)
    file_complaint = sync_method(agents.file_complaint)
    rotate_token = sync_method(agents.rotate_token)
    suspend_all = sync_method(agents.suspend_all)
    reactivate_all = sync_method(agents.reactivate_all)
    compliance_report = sync_method(agents.compliance_report)

    list_approvals = sync_method(admin.list_approvals)
    get_approval = sync_method(admin.get_approval)
    approve = sync_method(admin.approve)
    reject = sync_method(admin.reject)
    create_organisation = sync_method(admin.create_organisation)
    create_key = sync_method(admin.create_key)
    list_keys = sync_method(admin.list_keys)
    get_own_key = sync_method(admin.get_own_key)
    revoke_key = sync_method(admin.revoke_key)
    list_changes = sync_method(admin.list_changes)
    list_tools = sync_method(admin.list_tools)
    put_tool = sync_method(admin.put_tool)
    set_webhook = sync_method(admin.set_webhook)
    get_webhook = sync_method(admin.get_webhook)
    delete_webhook = sync_method(admin.delete_webhook)

    intercept = sync_method(a2a.intercept)
    a2a_health = sync_method(a2a.a2a_health)
    a2a_metrics = sync_method(a2a.a2a_metrics)
    a2a_lists = sync_method(a2a.a2a_lists)
    block_agent = sync_method(a2a.block_agent)
    unblock_agent = sync_method(a2a.unblock_agent)
    block_pair = sync_method(a2a.block_pair)
    unblock_pair = sync_method(a2a.unblock_pair)
    trust_agent = sync_method(a2a.trust_agent)
    revoke_agent = sync_method(a2a.revoke_agent)

    health = sync_method(audit.health)
    ready = sync_method(audit.ready)
    get_jwks = sync_method(audit.get_jwks)
    verify_attestation = sync_method(audit.verify_attestation)
    get_attestation = sync_method(audit.get_attestation)
    revoke_attestation = sync_method(audit.revoke_attestation)
    rotate_signing_key = sync_method(audit.rotate_signing_key)
    audit_head = sync_method(audit.audit_head)
    audit_entries = sync_method(audit.audit_entries)
    audit_inclusion = sync_method(audit.audit_inclusion)
    audit_consistency = sync_method(audit.audit_consistency)
    erase = sync_method(audit.erase)

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class QWEDAsyncClient(AsyncDriver):
    """Client of a server for asyncio and trio, with or without `async with`."""

    verify = async_method(engines.verify)
    verify_math = async_method(engines.verify_math)
    verify_logic = async_method(engines.verify_logic)
    verify_code = async_method(engines.verify_code)
    verify_sql = async_method(engines.verify_sql)
    verify_fact = async_method(engines.verify_fact)
    verify_stats = async_method(engines.verify_stats)
    verify_image = async_method(engines.verify_image)
    verify_consensus = async_method(engines.verify_consensus)
    verify_legal = async_method(engines.verify_legal)
    verify_finance = async_method(engines.verify_finance)
    verify_ucp = async_method(engines.verify_ucp)
    verify_tax = async_method(engines.verify_tax)
    verify_batch = async_method(engines.verify_batch)
    get_batch_status = async_method(engines.get_batch_status)

    register_agent = async_method(agents.register_agent)
    get_agent = async_method(agents.get_agent)
    list_agents = async_method(agents.list_agents)
    verify_action = async_method(agents.verify_action)
    verify_tool_call = async_method(agents.verify_tool_call)
    get_action = async_method(agents.get_action)
    wait_for_decision = async_method(agents.wait_for_decision)
    log_execution = async_method(agents.log_execution)
    get_agent_budget = async_method(agents.get_agent_budget)
    get_agent_activity = async_method(agents.get_agent_activity)
    request_trust_change = async_method(agents.request_trust_change)
    reduce_trust = async_method(agents.reduce_trust)
    suspend_agent = async_method(agents.suspend_agent)
    reactivate_agent = async_method(agents.reactivate_agent)
    file_complaint = async_method(agents.file_complaint)
    rotate_token = async_method(agents.rotate_token)
    suspend_all = async_method(agents.suspend_all)
    reactivate_all = async_method(agents.reactivate_all)
    compliance_report = async_method(agents.compliance_report)

    list_approvals = async_method(admin.list_approvals)
    get_approval = async_method(admin.get_approval)
    approve = async_method(admin.approve)
    reject = async_method(admin.reject)
    create_organisation = async_method(admin.create_organisation)
    create_key = async_method(admin.create_key)
    list_keys = async_method(admin.list_keys)
    get_own_key = async_method(admin.get_own_key)
    revoke_key = async_method(admin.revoke_key)
    list_changes = async_method(admin.list_changes)
    list_tools = async_method(admin.list_tools)
    put_tool = async_method(admin.put_tool)
    set_webhook = async_method(admin.set_webhook)
    get_webhook = async_method(admin.get_webhook)
    delete_webhook = async_method(admin.delete_webhook)

    intercept = async_method(a2a.intercept)
    a2a_health = async_method(a2a.a2a_health)
    a2a_metrics = async_method(a2a.a2a_metrics)
    a2a_lists = async_method(a2a.a2a_lists)
    block_agent = async_method(a2a.block_agent)
    unblock_agent = async_method(a2a.unblock_agent)
    block_pair = async_method(a2a.block_pair)
    unblock_pair = async_method(a2a.unblock_pair)
    trust_agent = async_method(a2a.trust_agent)
    revoke_agent = async_method(a2a.revoke_agent)

    health = async_method(audit.health)
    ready = async_method(audit.ready)
    get_jwks = async_method(audit.get_jwks)
    verify_attestation = async_method(audit.verify_attestation)
    get_attestation = async_method(audit.get_attestation)
    revoke_attestation = async_method(audit.revoke_attestation)
    rotate_signing_key = async_method(audit.rotate_signing_key)
    audit_head = async_method(audit.audit_head)
    audit_entries = async_method(audit.audit_entries)
    audit_inclusion = async_method(audit.audit_inclusion)
    audit_consistency = async_method(audit.audit_consistency)
    erase = async_method(audit.erase)

    async def close(self) -> None:
        """Close the connections; the next call opens them again."""
        await self._transport.close()

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
