"""A Pydantic AI agent that may not delete a database: the model reads why, and the function never runs."""

import asyncio

from pydantic_ai import Agent, FunctionToolset, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from qwed_sdk import QWEDAgentClient
from qwed_sdk.pydantic_ai import QWEDToolset


def model(messages, _info):
    asked = [ToolCallPart("delete_database", {"name": "prod"})]
    return ModelResponse(asked if len(messages) == 1 else [TextPart(messages[-1].parts[0].content.split(":")[0])])


def delete_database(name: str) -> None:
    print("deleted", name)


tools = FunctionToolset([delete_database])
qwed = QWEDToolset(tools, client=QWEDAgentClient.register(name="pydantic-cleaner", principal_id="ops"))
print(asyncio.run(Agent(FunctionModel(model), toolsets=[qwed]).run("tidy up")).output)

# prints: qwed did not permit `delete_database`
