"""A scene in which anything may be refused: an agent, its people, a neighbour, and what none of them may be told."""

from typing import Any, NamedTuple

import httpx

from tests.conftest import Asking
from tests.spec.asking import SUM, Json
from tests.spec.conftest import House, People

SECRET = "AKIAIOSFODNN7EXAMPLE"
STATE = "0" * 64


class Scene(NamedTuple):
    """Who there is, and an agent nobody has asked anything."""

    house: House
    people: People
    ask: Asking
    neighbour: Json
    """An agent of another organisation."""

    def verify(self, action: Any = SUM, step: Any = 1, **context: Any) -> httpx.Response:
        return self.ask.send({"action": action, "context": {"conversation_id": "c", "step_number": step, **context}})

    def sent(self, body: Any, **headers: str) -> httpx.Response:
        return self.ask.send(body, headers)

    def plain(self, method: str, path: str, body: Any = None, key: str | None = "owner") -> httpx.Response:
        with self.house.client(key) as client:
            return client.request(method, path.replace("{agent}", f"/agents/{self.ask.agent_id}"), json=body)

    def last(self, *responses: httpx.Response) -> httpx.Response:
        return responses[-1]


def raw(scene: Scene, path: str, content: bytes) -> httpx.Response:
    """A body that is sent as it stands."""
    return scene.people.member.post(path.replace("{agent}", f"/agents/{scene.ask.agent_id}"), content=content)


def require_discretion(response: httpx.Response, scene: Scene) -> None:
    """Neither a credential nor a secret nor another organisation's id stands in the answer."""
    said = response.text + str(response.headers)
    agents = (scene.ask.agent, scene.neighbour, scene.house.suspended)
    hidden = {*scene.house.keys.values(), *(agent["agent_token"] for agent in agents), SECRET}
    hidden |= {scene.neighbour["agent_id"], scene.neighbour["name"], scene.house.suspended["agent_id"]}
    assert [each for each in hidden if each in said] == []
