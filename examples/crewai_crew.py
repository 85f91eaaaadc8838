"""A CrewAI agent is refused a tool; its model is a script, so that this runs without one."""

from crewai import BaseLLM, Crew, Task
from crewai.tools import tool

from qwed_sdk import QWEDAgentClient
from qwed_sdk.crewai import QWEDVerifiedAgent


class Script(BaseLLM):
    def call(self, messages, *_, **__):
        asks = 'Thought: tidy up\nAction: delete_database\nAction Input: {"name": "prod"}'
        return "Final Answer: could not tidy up" if "did not permit" in str(messages) else asks


@tool
def delete_database(name: str) -> str:
    """Delete a database."""
    raise SystemExit(f"{name} is gone")


cleaner = QWEDAgentClient.register("crew-cleaner", "ops")
agent = QWEDVerifiedAgent(role="Cleaner", goal="tidy", llm=Script(model="x"), tools=[delete_database], client=cleaner)
done = Crew(agents=[agent], tasks=[Task(description="tidy up", expected_output="-", agent=agent)]).kickoff()
print(done, [failed.failure.details["code"] for failed in done.tasks_output[0].tool_failures])

# prints: could not tidy up ['QWED-AGENT-TRUST-001']
