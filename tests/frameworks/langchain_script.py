"""Scripted model and recording tools for the LangChain tests and scenes."""

from collections.abc import Callable, Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.tools import BaseTool, StructuredTool

CallSpec = tuple[str, dict[str, Any]]
GRAPH_INPUT = {"messages": [("user", "go")]}
"""Input of an agent of `create_agent`; an executor receives `EXECUTOR_INPUT`."""
EXECUTOR_INPUT = {"input": "go"}


class Scripted(BaseChatModel):
    """Model that returns its lines in order, and records the messages it receives."""

    lines: Iterator[AIMessage]
    heard: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.heard.append(messages)
        return ChatResult(generations=[ChatGeneration(message=next(self.lines))])

    def bind_tools(self, *_: Any, **__: Any) -> "Scripted":
        return self


def scripted(*turns: list[CallSpec]) -> Scripted:
    """Return a model that makes the calls of each turn at once, turn by turn, and then says `done`."""
    lines = [
        AIMessage(
            "",
            tool_calls=[
                ToolCall(name=tool, args=arguments, id=f"{turn}.{call}") for call, (tool, arguments) in enumerate(calls)
            ],
        )
        for turn, calls in enumerate(turns)
    ]
    return Scripted(lines=iter([*lines, AIMessage("done")]), heard=[])


def toolbox(ran: list[CallSpec]) -> list[BaseTool]:
    """Return the three tools of the scenes; each records its calls."""

    def tool(name: str, function: Callable[..., str]) -> BaseTool:
        return StructuredTool.from_function(function, name=name, description=f"the tool {name}")

    def search_web(query: str) -> str:
        ran.append(("search_web", {"query": query}))
        return f"found {query}"

    def delete_database(name: str) -> str:
        ran.append(("delete_database", {"name": name}))
        return "deleted"

    def send_email(to: str, body: str) -> str:
        ran.append(("send_email", {"to": to, "body": body}))
        return "sent"

    return [tool(named.__name__, named) for named in (search_web, delete_database, send_email)]


def executor(model: BaseChatModel, tools: list[BaseTool], **fields: Any) -> AgentExecutor:
    """Return a classic agent."""
    prompt = ChatPromptTemplate.from_messages([("human", "{input}"), MessagesPlaceholder("agent_scratchpad")])
    return AgentExecutor(agent=create_tool_calling_agent(model, tools, prompt), tools=tools, **fields)


def graph(model: BaseChatModel, tools: list[BaseTool], **fields: Any) -> Any:
    """Return an agent of LangChain 1.x."""
    return create_agent(model, tools, **fields)
