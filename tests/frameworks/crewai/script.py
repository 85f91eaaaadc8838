"""What the CrewAI tests and the scene share: a model that follows a script, and tools that only remember."""

import json
from collections.abc import Sequence
from typing import Any

from crewai import BaseLLM, Crew, Task
from crewai.tools import BaseTool, tool
from pydantic import PrivateAttr

from qwed_sdk import QWEDAgentClient
from qwed_sdk.crewai import QWEDVerifiedAgent

Asked = tuple[str, dict[str, Any]]

SEARCH: Asked = ("search_web", {"query": "oslo"})
DELETE: Asked = ("delete_database", {"name": "prod"})
EMAIL: Asked = ("send_email", {"to": "a@b.example", "body": "hello"})


class Script(BaseLLM):  # type: ignore[misc] # CrewAI is not installed where types are checked
    """Asks for the calls of each turn, turn by turn, and then says `done`; keeps what it was told in between."""

    native: bool = False
    _turns: list[list[Asked]] = PrivateAttr(default_factory=list)
    _heard: list[str] = PrivateAttr(default_factory=list)

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        """The next turn: text of the form CrewAI parses, or calls as an API would send them."""
        self._heard.extend(str(message.get("content")) for message in messages[-2:])
        if not self._turns:
            return "Thought: I now know the final answer\nFinal Answer: done"
        turn = self._turns.pop(0)
        if self.native:
            return [
                {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                for number, (name, given) in enumerate(turn)
            ]
        name, given = turn[0]
        return f"Thought: next\nAction: {name}\nAction Input: {json.dumps(given)}"

    async def acall(self, *args: Any, **named: Any) -> Any:
        """The same, awaited."""
        return self.call(*args, **named)

    def supports_function_calling(self) -> bool:
        """Whether CrewAI hands tools over as schemas, or describes them in the prompt."""
        return self.native

    @property
    def heard(self) -> str:
        """Everything the model was told."""
        return "\n".join(self._heard)


def scripted(*turns: Sequence[Asked], native: bool = False) -> Script:
    """A model that asks for the calls of each turn at once; a model that writes text has one call a turn."""
    script = Script(model="script", native=native)
    script._turns = [list(turn) for turn in turns]
    return script


def toolbox(ran: list[Asked]) -> list[BaseTool]:
    """The three tools of the scenes; each writes down that it ran, and with what."""

    @tool
    def search_web(query: str) -> str:
        """Search the web."""
        ran.append(("search_web", {"query": query}))
        return f"found {query}"

    @tool
    def delete_database(name: str) -> str:
        """Delete a database."""
        ran.append(("delete_database", {"name": name}))
        return "deleted"

    @tool
    def send_email(to: str, body: str) -> str:
        """Send a message."""
        ran.append(("send_email", {"to": to, "body": body}))
        return "sent"

    return [search_web, delete_database, send_email]


def task_of(agent: Any, **given: Any) -> Task:
    """A task that says nothing in particular."""
    return Task(description="do it", expected_output="that it is done", agent=agent, **given)


def crew_of(*agents: Any, **given: Any) -> Crew:
    """A crew with one task for the first agent."""
    return Crew(agents=list(agents), tasks=given.pop("tasks", None) or [task_of(agents[0])], **given)


def analyst(model: Script, tools: list[Any], me: QWEDAgentClient, **given: Any) -> QWEDVerifiedAgent:
    """A verified agent."""
    return QWEDVerifiedAgent(role="Analyst", goal="Analyze data", llm=model, tools=tools, client=me, **given)


def asked(me: QWEDAgentClient) -> list[tuple[str, str]]:
    """What was asked and answered, oldest first."""
    return [(each.action["tool"], each.decision) for each in reversed(me.get_activity())]
