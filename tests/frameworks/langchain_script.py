"""What the LangChain tests and scenes share: a model that follows a script, and tools that only remember."""

from collections.abc import Callable, Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.tools import BaseTool, StructuredTool

Asked = tuple[str, dict[str, Any]]
SAID = {"messages": [("user", "go")]}
"""What is said to an agent of `create_agent`; an executor is told `TOLD`."""
TOLD = {"input": "go"}


class Scripted(BaseChatModel):
    """Says its lines one after the other and keeps what it was told in between."""

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


def scripted(*turns: list[Asked]) -> Scripted:
    """A model that asks for the calls of each turn at once, turn by turn, and then says `done`."""
    lines = [
        AIMessage(
            "",
            tool_calls=[
                ToolCall(name=tool, args=given, id=f"{turn}.{call}") for call, (tool, given) in enumerate(calls)
            ],
        )
        for turn, calls in enumerate(turns)
    ]
    return Scripted(lines=iter([*lines, AIMessage("done")]), heard=[])


def toolbox(ran: list[Asked]) -> list[BaseTool]:
    """The three tools of the scenes; each writes down that it ran, and with what."""

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

    return [tool(each.__name__, each) for each in (search_web, delete_database, send_email)]


def executor(model: BaseChatModel, tools: list[BaseTool], **given: Any) -> AgentExecutor:
    """A classic agent."""
    prompt = ChatPromptTemplate.from_messages([("human", "{input}"), MessagesPlaceholder("agent_scratchpad")])
    return AgentExecutor(agent=create_tool_calling_agent(model, tools, prompt), tools=tools, **given)


def graph(model: BaseChatModel, tools: list[BaseTool], **given: Any) -> Any:
    """An agent of LangChain 1.x."""
    return create_agent(model, tools, **given)
