"""QWEDClient and QWEDAsyncClient: every operation of the server as a method."""

from types import TracebackType
from typing import Self

from qwed_sdk.operations import a2a, admin, agent_lifecycle, agents, audit, engines, policies
from qwed_sdk.sync_async import AsyncDriver, SyncDriver, client_method


class ClientMethods:
    """Every operation of the server; each client runs them in its own way."""

    verify = client_method(engines.verify)
    verify_math = client_method(engines.verify_math)
    verify_logic = client_method(engines.verify_logic)
    verify_code = client_method(engines.verify_code)
    verify_sql = client_method(engines.verify_sql)
    verify_fact = client_method(engines.verify_fact)
    verify_stats = client_method(engines.verify_stats)
    verify_image = client_method(engines.verify_image)
    verify_consensus = client_method(engines.verify_consensus)
    verify_legal = client_method(engines.verify_legal)
    verify_finance = client_method(engines.verify_finance)
    verify_ucp = client_method(engines.verify_ucp)
    verify_tax = client_method(engines.verify_tax)
    verify_batch = client_method(engines.verify_batch)
    get_batch_status = client_method(engines.get_batch_status)

    register_agent = client_method(agents.register_agent)
    get_agent = client_method(agents.get_agent)
    list_agents = client_method(agents.list_agents)
    edit_agent = client_method(agent_lifecycle.edit_agent)
    retire_agent = client_method(agent_lifecycle.retire_agent)
    verify_action = client_method(agents.verify_action)
    verify_tool_call = client_method(agents.verify_tool_call)
    get_action = client_method(agents.get_action)
    wait_for_decision = client_method(agents.wait_for_decision)
    log_execution = client_method(agents.log_execution)
    get_agent_budget = client_method(agents.get_agent_budget)
    get_agent_activity = client_method(agents.get_agent_activity)
    request_trust_change = client_method(agent_lifecycle.request_trust_change)
    reduce_trust = client_method(agent_lifecycle.reduce_trust)
    restore_trust = client_method(agent_lifecycle.restore_trust)
    suspend_agent = client_method(agent_lifecycle.suspend_agent)
    reactivate_agent = client_method(agent_lifecycle.reactivate_agent)
    file_complaint = client_method(agent_lifecycle.file_complaint)
    rotate_token = client_method(agent_lifecycle.rotate_token)
    suspend_all = client_method(agent_lifecycle.suspend_all)
    reactivate_all = client_method(agent_lifecycle.reactivate_all)
    compliance_report = client_method(agents.compliance_report)

    list_approvals = client_method(admin.list_approvals)
    get_approval = client_method(admin.get_approval)
    approve = client_method(admin.approve)
    reject = client_method(admin.reject)
    create_organisation = client_method(admin.create_organisation)
    create_key = client_method(admin.create_key)
    change_key_groups = client_method(admin.change_key_groups)
    list_keys = client_method(admin.list_keys)
    get_own_key = client_method(admin.get_own_key)
    revoke_key = client_method(admin.revoke_key)
    list_changes = client_method(admin.list_changes)
    list_tools = client_method(admin.list_tools)
    put_tool = client_method(admin.put_tool)
    delete_tool = client_method(admin.delete_tool)
    get_policies = client_method(policies.get_policies)
    apply_policies = client_method(policies.apply_policies)
    check_policies = client_method(policies.check_policies)
    explain_action = client_method(policies.explain_action)
    get_policy = client_method(policies.get_policy)
    put_policy = client_method(policies.put_policy)
    delete_policy = client_method(policies.delete_policy)
    roll_back_policies = client_method(policies.roll_back_policies)
    list_policy_versions = client_method(policies.list_policy_versions)
    set_webhook = client_method(admin.set_webhook)
    get_webhook = client_method(admin.get_webhook)
    delete_webhook = client_method(admin.delete_webhook)

    intercept = client_method(a2a.intercept)
    a2a_health = client_method(a2a.a2a_health)
    a2a_metrics = client_method(a2a.a2a_metrics)
    a2a_lists = client_method(a2a.a2a_lists)
    block_agent = client_method(a2a.block_agent)
    unblock_agent = client_method(a2a.unblock_agent)
    block_pair = client_method(a2a.block_pair)
    unblock_pair = client_method(a2a.unblock_pair)
    trust_agent = client_method(a2a.trust_agent)
    revoke_agent = client_method(a2a.revoke_agent)

    health = client_method(audit.health)
    ready = client_method(audit.ready)
    get_jwks = client_method(audit.get_jwks)
    verify_attestation = client_method(audit.verify_attestation)
    get_attestation = client_method(audit.get_attestation)
    revoke_attestation = client_method(audit.revoke_attestation)
    rotate_signing_key = client_method(audit.rotate_signing_key)
    audit_head = client_method(audit.audit_head)
    audit_entries = client_method(audit.audit_entries)
    audit_inclusion = client_method(audit.audit_inclusion)
    audit_consistency = client_method(audit.audit_consistency)
    erase = client_method(audit.erase)


class QWEDClient(ClientMethods, SyncDriver):
    """Blocking client of a server; safe to share between threads, and after a fork.

    A refusal is returned as a decision. Everything else that is not an answer raises a QWEDError.
    """

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class QWEDAsyncClient(ClientMethods, AsyncDriver):
    """Client of a server for asyncio and trio, with or without `async with`."""

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
