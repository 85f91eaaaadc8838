"""The same question over HTTP; QWED_BASE_URL and QWED_API_KEY say where the server is and who asks."""

import os

import httpx

base_url = os.environ.get("QWED_BASE_URL", "http://127.0.0.1:8000")
with httpx.Client(base_url=base_url, headers={"X-API-Key": os.environ["QWED_API_KEY"]}) as client:
    agent = client.post("/agents/register", json={"name": "http-cleaner", "principal_id": "ops"}).json()
    question = {
        "action": {"type": "file_delete", "target": "/srv/reports/may.csv"},
        "context": {"conversation_id": "c1", "step_number": 1},
    }
    answer = client.post(f"/agents/{agent['agent_id']}/verify", json=question).json()
    print(answer["decision"], answer["error"]["code"])

# prints: DENIED QWED-AGENT-TRUST-001
