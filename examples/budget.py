"""An agent with ten cents a day asks for more."""

import qwed

with qwed.open() as gate:
    agent = gate.register_agent(name="buyer", principal_id="ops", budget={"max_daily_cost_usd": 0.10})
    for step in (1, 2, 3):
        action = {"type": "calculate", "query": f"{step} * 2 = {step * 2}", "cost": {"usd": 0.04}}
        answer = gate.verify_action(agent.agent_id, action, {"conversation_id": "c1", "step_number": step})
        print(answer.decision, answer.budget_remaining["daily_cost_usd"])

# prints: APPROVED 0.06
# prints: APPROVED 0.02
# prints: BUDGET_EXCEEDED 0.02
