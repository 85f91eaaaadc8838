"""Scripted model and recording tools for the CrewAI tests and scene."""

import json
from collections.abc import Sequence
from typing import Any

from crewai import BaseLLM, Crew, Task
from crewai.tools import BaseTool, tool
from pydantic import PrivateAttr

from qwed_sdk import QWEDAgentClient
from qwed_sdk.crewai import QWEDVerifiedAgent

CallSpec = tuple[str, dict[str, Any]]

SEARCH: CallSpec = ("search_web", {"query": "oslo"})
DELETE: CallSpec = ("delete_database", {"name": "prod"})
EMAIL: CallSpec = ("send_email", {"to": "a@b.example", "body": "hello"})


class Script(BaseLLM):  # type: ignore[misc] # CrewAI is not installed where types are checked
    """Model that makes the calls of each turn, then says `done`, and records the messages it receives."""

    native: bool = False
    _turns: list[list[CallSpec]] = PrivateAttr(default_factory=list)
    _heard: list[str] = PrivateAttr(default_factory=list)

    def plan(self, *turns: Sequence[CallSpec]) -> None:
        """Replace the turns that are left."""
        self._turns = [list(turn) for turn in turns]

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        """Return the next turn: text in the format CrewAI parses, or calls as an API would send them."""
        self._heard.extend(str(message.get("content")) for message in messages[-2:])
        if not self._turns:
            return "Thought: I now know the final answer\nFinal Answer: done"
        turn = self._turns.pop(0)
        if self.native:
            return [
                {
                    "id": f"call_{number}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for number, (name, arguments) in enumerate(turn)
            ]
        name, arguments = turn[0]
        return f"Thought: next\nAction: {name}\nAction Input: {json.dumps(arguments)}"

    async def acall(self, *args: Any, **named: Any) -> Any:
        """Do the same, awaited."""
        return self.call(*args, **named)

    def supports_function_calling(self) -> bool:
        """Return True if CrewAI passes tools as schemas, and False if it describes them in the prompt."""
        return self.native

    @property
    def heard(self) -> str:
        """All text that the model received."""
        return "\n".join(self._heard)


def scripted(*turns: Sequence[CallSpec], native: bool = False) -> Script:
    """Return a model that makes the calls of each turn at once; a model that writes text has one call a turn."""
    script = Script(model="script", native=native)
    script.plan(*turns)
    return script


def toolbox(ran: list[CallSpec]) -> list[BaseTool]:
    """Return the three tools of the scenes; each records its calls."""

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


def task_of(agent: Any, **fields: Any) -> Task:
    """Return a task."""
    return Task(description="do it", expected_output="that it is done", agent=agent, **fields)


def crew_of(*agents: Any, **fields: Any) -> Crew:
    """Return a `Crew` with one task for the first agent."""
    return Crew(agents=list(agents), tasks=fields.pop("tasks", None) or [task_of(agents[0])], **fields)


def analyst(model: Script, tools: list[Any], me: QWEDAgentClient, **fields: Any) -> QWEDVerifiedAgent:
    """Return a verified agent."""
    return QWEDVerifiedAgent(role="Analyst", goal="Analyze data", llm=model, tools=tools, client=me, **fields)


def decisions_of(me: QWEDAgentClient) -> list[tuple[str, str]]:
    """Return tools and decisions of the agent's requests, oldest first."""
    return [(entry.action["tool"], entry.decision) for entry in reversed(me.get_activity())]
