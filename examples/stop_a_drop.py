"""An agent that may read is stopped from dropping a table."""

import qwed

with qwed.open() as gate:
    agent = gate.register_agent(name="report writer", principal_id="ops")
    for step, query in enumerate(["SELECT id FROM orders", "DROP TABLE orders"], start=1):
        action = {"type": "execute_sql", "query": query}
        answer = gate.verify_action(agent.agent_id, action, {"conversation_id": "c1", "step_number": step})
        print(query, answer.decision, sep=": ")

# prints: SELECT id FROM orders: APPROVED
# prints: DROP TABLE orders: DENIED
