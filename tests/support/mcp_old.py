"""An MCP server of 2024: it knows the handshake, tools and nothing else, and says so in lines of JSON."""

import json
import sys
from typing import Any

TOOL = {"name": "get_time", "description": "Tells the time", "inputSchema": {"type": "object", "properties": {}}}


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        told = {"name": "old", "version": "1"}
        return {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": told}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        said = json.dumps([params.get("name"), params.get("arguments"), params.get("_meta")])
        return {"content": [{"type": "text", "text": said}]}
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
