"""Scenario in which every refusal can be produced: an agent, its organisation, and a foreign agent."""

from typing import Any, NamedTuple

import httpx

from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import SUM, Json

SECRET = "AKIAIOSFODNN0FIXTURE"
STATE = "0" * 64


class Scene(NamedTuple):
    """Clients of the organisation and a fresh agent."""

    spec_server: SpecServer
    keyholders: Keyholders
    ask: AgentConversation
    foreign_agent: Json
    """An agent of another organisation."""

    def verify(self, action: Any = SUM, step: Any = 1, **context: Any) -> httpx.Response:
        return self.ask.send({"action": action, "context": {"conversation_id": "c", "step_number": step, **context}})

    def sent(self, body: Any, **headers: str) -> httpx.Response:
        return self.ask.send(body, headers)

    def plain(self, method: str, path: str, body: Any = None, key: str | None = "owner") -> httpx.Response:
        with self.spec_server.client(key) as client:
            return client.request(method, path.replace("{agent}", f"/agents/{self.ask.agent_id}"), json=body)

    def last(self, *responses: httpx.Response) -> httpx.Response:
        return responses[-1]


def raw(scene: Scene, path: str, content: bytes) -> httpx.Response:
    """Send a raw request body."""
    return scene.keyholders.member.post(path.replace("{agent}", f"/agents/{scene.ask.agent_id}"), content=content)


def require_discretion(response: httpx.Response, scene: Scene) -> None:
    """Assert that the answer has no credential, no secret and no id of another organisation."""
    said = response.text + str(response.headers)
    agents = (scene.ask.agent, scene.foreign_agent, scene.spec_server.suspended)
    hidden = {*scene.spec_server.keys.values(), *(agent["agent_token"] for agent in agents), SECRET}
    hidden |= {scene.foreign_agent["agent_id"], scene.foreign_agent["name"], scene.spec_server.suspended["agent_id"]}
    assert [each for each in hidden if each in said] == []
