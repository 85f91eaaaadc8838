"""Who sends messages to a server: an organisation of its own, with keys of every role."""

import itertools
from typing import Any, NamedTuple

import httpx

_numbers = itertools.count(1)
Json = dict[str, Any]


class Office(NamedTuple):
    """One organisation of a server."""

    client: httpx.Client
    """One that shows nothing of its own."""
    keys: dict[str, str]

    def ask(self, method: str, path: str, body: Any = None, role: str = "owner", token: str = "") -> httpx.Response:
        """What somebody of it is answered; nobody shows anything."""
        headers = {"X-API-Key": self.keys[role]} if role else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        content = {} if body is None else {"json": body}
        return self.client.request(method, path, headers=headers, **content)

    def hire(self, **fields: Any) -> Json:
        """A new agent and its token."""
        body = {"name": f"agent {next(_numbers)}", "principal_id": "user_123", **fields}
        made: Json = self.ask("POST", "/agents/register", body).json()
        return made

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
        """What is answered to one message."""
        body = {"sender_agent_id": sender, "receiver_agent_id": receiver, "payload_type": kind, **more}
        body["payload"] = {"text": f"message {next(_numbers)}"} if payload is None else payload
        return self.ask("POST", "/a2a/intercept", body, "" if token else role, token)

    def verdict(self, *args: Any, **named: Any) -> Json:
        """The verdict on one message."""
        response = self.send(*args, **named)
        assert response.status_code == 200, response.text
        read: Json = response.json()
        return read


def open_office(client: httpx.Client, landlord_key: str) -> Office:
    """A new organisation of the server that the client asks."""
    made = client.post("/organisations", json={"name": "an office"}, headers={"X-API-Key": landlord_key}).json()
    office = Office(client, {"owner": made["owner_key"]})
    for role in ("approver", "member"):
        office.keys[role] = office.ask("POST", "/keys", {"name": role, "role": role}).json()["key"]
    return office


def said(verdict: Json) -> tuple[str, str]:
    """What became of it, and who said so."""
    return verdict["status"], verdict["engine_used"]


def refusal(response: httpx.Response) -> tuple[int, str]:
    """The status and the code of an answer that is no verdict."""
    return response.status_code, response.json()["error"]["code"]
