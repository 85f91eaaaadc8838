"""An agent of OpenAI's SDK that may not delete a database: the model reads why, and the function never runs."""

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from qwed_sdk import QWEDAgentClient
from qwed_sdk.openai_agents import QWEDGuard


@function_tool
def delete_database(name: str) -> None:
    """Delete a database."""
    print("deleted", name)


set_tracing_disabled(True)
call = function_call("delete_database", {"name": "prod"}, call_id="1")
model = ScriptedModel([[call], [assistant_message("I was not allowed to.")]])
guard = QWEDGuard(client=QWEDAgentClient.register(name="openai-cleaner", principal_id="ops"))
result = Runner.run_sync(guard.agent(Agent(name="cleaner", model=model, tools=[delete_database])), "tidy up")
print(str(result.new_items[1].output).split(":")[0], result.final_output, sep="\n")

# prints: qwed did not permit `delete_database`
# prints: I was not allowed to.
