"""An agent loop without a framework: each call the model asks for is verified before it runs."""

from qwed_sdk import Checkpoint, QWEDAgentClient, Refusal

TOOLS = {"search_web": lambda query: f"3 results for {query}", "delete_database": lambda name: f"{name} is gone"}
MODEL = [("search_web", {"query": "weather"}), ("delete_database", {"name": "prod"})]

checkpoint = Checkpoint(QWEDAgentClient.register(name="assistant", principal_id="ops"))
for tool, arguments in MODEL:
    permit = checkpoint.before(tool, arguments)
    if isinstance(permit, Refusal):
        print(tool, permit.decision, permit.code)
        continue
    result = TOOLS[tool](**permit.arguments)
    checkpoint.after(permit, True, result)
    print(result)

# prints: 3 results for weather
# prints: delete_database DENIED QWED-AGENT-TRUST-001
