"""A LangChain agent that may not delete a database: the model reads why, and the function never runs."""

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from qwed_sdk import QWEDAgentClient
from qwed_sdk.langchain import QWEDMiddleware


class Scripted(FakeMessagesListChatModel):
    def bind_tools(self, *_: object, **__: object) -> "Scripted":
        return self


def delete_database(name: str) -> None:
    """Delete a database."""
    print("deleted", name)


call = {"name": "delete_database", "args": {"name": "prod"}, "id": "1"}
model = Scripted(responses=[AIMessage("", tool_calls=[call]), AIMessage("I was not allowed to.")])
qwed = QWEDMiddleware(client=QWEDAgentClient.register(name="langchain-cleaner", principal_id="ops"))
done = create_agent(model, [delete_database], middleware=[qwed]).invoke({"messages": [("user", "tidy up")]})
print(*(message.text.split(":")[0] for message in done["messages"][2:]), sep="\n")

# prints: qwed did not permit `delete_database`
# prints: I was not allowed to.
