"""Client of one organisation on a server, with keys of every role."""

import itertools
from typing import Any, NamedTuple

import httpx

_numbers = itertools.count(1)
Json = dict[str, Any]


class OrganisationClient(NamedTuple):
    """One organisation of a server."""

    client: httpx.Client
    """HTTP client without credentials."""
    keys: dict[str, str]

    def ask(self, method: str, path: str, body: Any = None, role: str = "owner", token: str = "") -> httpx.Response:
        """Send a request with the key of a role, with a token, or anonymously."""
        headers = {"X-API-Key": self.keys[role]} if role else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        content = {} if body is None else {"json": body}
        return self.client.request(method, path, headers=headers, **content)

    def register_agent(self, **fields: Any) -> Json:
        """Return a new agent and its token."""
        body = {"name": f"agent {next(_numbers)}", "principal_id": "user_123", **fields}
        agent: Json = self.ask("POST", "/agents/register", body).json()
        return agent

    def send(
        self,
        sender: str = "buyer",
        receiver: str = "seller",
        payload: Any = None,
        kind: str = "general",
        *,
        role: str = "owner",
        token: str = "",
        **more: Any,
    ) -> httpx.Response:
        """Send one message and return the response."""
        body = {"sender_agent_id": sender, "receiver_agent_id": receiver, "payload_type": kind, **more}
        body["payload"] = {"text": f"message {next(_numbers)}"} if payload is None else payload
        return self.ask("POST", "/a2a/intercept", body, "" if token else role, token)

    def verdict(self, *args: Any, **named: Any) -> Json:
        """Return the verdict on one message."""
        response = self.send(*args, **named)
        assert response.status_code == 200, response.text
        read: Json = response.json()
        return read


def create_organisation(client: httpx.Client, operator_key: str) -> OrganisationClient:
    """Create an organisation on the server."""
    created = client.post(
        "/organisations", json={"name": "an organisation"}, headers={"X-API-Key": operator_key}
    ).json()
    organisation = OrganisationClient(client, {"owner": created["owner_key"]})
    for role in ("approver", "member"):
        organisation.keys[role] = organisation.ask("POST", "/keys", {"name": role, "role": role}).json()["key"]
    return organisation


def outcome_of(verdict: Json) -> tuple[str, str]:
    """Return the status and the engine of a verdict."""
    return verdict["status"], verdict["engine_used"]


def error_of(response: httpx.Response) -> tuple[int, str]:
    """Return the HTTP status and the code of an error."""
    return response.status_code, response.json()["error"]["code"]
