"""MCP server of the 2024 protocol: handshake and tools only."""

import json
import sys
from typing import Any

MODEL = {"name": "check_model", "description": "Asks the model", "inputSchema": {"type": "object", "properties": {}}}
FLOOD = {"name": "read_flood", "description": "Says too much", "inputSchema": {"type": "object", "properties": {}}}
TOOL = {"name": "get_time", "description": "Tells the time", "inputSchema": {"type": "object", "properties": {}}}


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        server_info = {"name": "old", "version": "1"}
        return {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": server_info}
    if method == "tools/list":
        return {"tools": [TOOL, MODEL, FLOOD]}
    if method == "tools/call" and params.get("name") == "read_flood":
        print("no message at all\n" + "x" * (33 << 20), end="")
    if method == "tools/call" and params.get("name") == "check_model":
        return {"content": [{"type": "text", "text": json.dumps(_sample_model())}]}
    if method == "tools/call":
        text = json.dumps([params.get("name"), params.get("arguments"), params.get("_meta")])
        return {"content": [{"type": "text", "text": text}]}
    return None


def _sample_model() -> Any:
    """Return the answer of the client's model, or the error if sampling is not allowed."""
    message_in = {"role": "user", "content": {"type": "text", "text": "hello"}}
    params = {"messages": [message_in], "maxTokens": 5}
    print(json.dumps({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": params}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "s1":
            return message.get("result") or message["error"]
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = _answer(message["method"], message.get("params") or {})
        outcome = {"error": {"code": -32601, "message": "what?"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)


if __name__ == "__main__":
    main()
