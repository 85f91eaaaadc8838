"""An agent that repeats itself is stopped the third time."""

import qwed

with qwed.open() as gate:
    agent = gate.register_agent(name="stuck", principal_id="ops")
    for step in (1, 2, 3):
        context = {"conversation_id": "c1", "step_number": step}
        answer = gate.verify_tool_call(agent.agent_id, "get_weather", {"city": "Oslo"}, context)
        print(answer.decision, answer.error["code"] if answer.error else "-")

# prints: APPROVED -
# prints: APPROVED -
# prints: DENIED QWED-AGENT-LOOP-003
