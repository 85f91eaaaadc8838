"""Gate methods for the organisation's policies."""

from collections.abc import Mapping
from typing import Any

from qwed.gate.base import GateBase
from qwed.gate.gate_result import Reply
from qwed.kernel.operations import policy_operations as policies


class PolicyMethods(GateBase):
    """The organisation's own rules, in process."""

    def get_policies(self, version: int | None = None) -> Reply:
        """Return the policy set in force, or one of its versions."""
        return self._call(policies.get_policies, version=version)

    def apply_policies(self, documents: Mapping[str, str], version: int | None = None) -> Reply:
        """Put a whole policy set in force: texts by file name. The same set once more changes nothing."""
        return self._run(policies.put_policies, {}, _documents(documents), _if_match(version))

    def check_policies(self, documents: Mapping[str, str]) -> Reply:
        """Return the problems of policy documents, without putting them in force."""
        return self._run(policies.check_policies, {}, _documents(documents))

    def explain_action(
        self, agent_id: str, action: Mapping[str, Any], options: Mapping[str, Any] | None = None
    ) -> Reply:
        """Return what would be decided about an action, and why; nothing is stored."""
        return self._call(policies.explain_policies, agent_id=agent_id, action=dict(action), options=options)

    def get_policy(self, policy_id: str) -> Reply:
        """Return one policy of the set in force."""
        return self._call(policies.get_policy, {"policy_id": policy_id})

    def put_policy(self, policy_id: str, text: str, version: int | None = None) -> Reply:
        """Add a policy to the set in force, or replace it."""
        return self._run(policies.put_policy, {"policy_id": policy_id}, {"text": text}, _if_match(version))

    def delete_policy(self, policy_id: str, version: int | None = None) -> Reply:
        """Remove a policy from the set in force."""
        return self._run(policies.delete_policy, {"policy_id": policy_id}, {}, _if_match(version))

    def roll_back_policies(self, to_version: int, version: int | None = None) -> Reply:
        """Put an earlier version of the policy set in force again, as a new version."""
        return self._run(policies.roll_back_policies, {}, {"version": to_version}, _if_match(version))

    def list_policy_versions(self, policy_id: str | None = None, limit: int = 100) -> list[Reply]:
        """Return the versions of the policy set, newest first; only those that changed a policy, if it is named."""
        if policy_id is None:
            return self._list(policies.list_policy_sets, "versions", limit=limit)
        return self._list(policies.list_policy_versions, "versions", {"policy_id": policy_id}, limit=limit)


def _documents(documents: Mapping[str, str]) -> dict[str, Any]:
    return {"documents": [{"name": name, "text": text} for name, text in documents.items()]}


def _if_match(version: int | None) -> str:
    return "*" if version is None else str(version)
