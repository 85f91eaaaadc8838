"""What an agent says of a deadline, a checkout and an account is computed again before it acts on it."""

import qwed

LINES = [{"id": "lamp", "quantity": 2, "price": "10.50"}]
TOTALS = [{"type": kind, "amount": amount} for kind, amount in (("tax", "1.73"), ("total", "22.37"))]
CHECKOUT = {"currency": "USD", "status": "ready_for_complete", "line_items": LINES, "totals": TOTALS}
TERM = {"signing_date": "2026-01-15", "term": "30 business days", "claimed_deadline": "2026-03-02"}
CLAIMS = {
    "verify_legal": {"operation": "deadline", **TERM},
    "verify_ucp": {"operation": "checkout", "checkout": CHECKOUT},
    "verify_finance": {"operation": "iban", "iban": "DE98 3704 0044 0532 0130 00"},
}
with qwed.open() as gate:
    agent = gate.register_agent(name="buyer", principal_id="ops").agent_id
    for step, (kind, claim) in enumerate(CLAIMS.items(), start=1):
        action = {"type": kind, "parameters": claim}
        answer = gate.verify_action(agent, action, {"conversation_id": "c1", "step_number": step})
        print(answer.decision, answer.verification["message"], sep=": ")

# prints: APPROVED: the deadline is 2026-03-02 (Monday), and 2026-03-02 is claimed
# prints: DENIED: `total` is 22.37, but 21.00 + 1.73 = 22.73
# prints: DENIED: the check digits of `DE98370400440532013000` must be `89`
