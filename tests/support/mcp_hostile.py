"""MCP server that misbehaves in the way its argument names."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

TOOL = {"name": "get_time", "description": "Tells the time", "inputSchema": {"type": "object", "properties": {}}}
_PING = '{"jsonrpc": "2.0", "id": "p", "method": "ping"}\n'


def say(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def _without_end(text: str) -> None:
    while True:
        sys.stdout.write(text * 2_000)


def _asks_without_end() -> None:
    _without_end(_PING)


def _says_nonsense_without_end() -> None:
    _without_end("nonsense\n")


def _leaves_a_daemon() -> None:
    """Start a daemon in its own session that ignores SIGTERM and writes its pid to a file."""
    program = (
        "import os, signal, sys, time; os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    )
    subprocess.Popen([sys.executable, "-c", program, sys.argv[2]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not os.path.exists(sys.argv[2]) or not os.path.getsize(sys.argv[2]):
        time.sleep(0.01)


ONCE_MET: dict[str, Callable[[], None]] = {
    "asks": _asks_without_end,
    "nonsense": _says_nonsense_without_end,
    "daemon": _leaves_a_daemon,
}


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        server_info = {"name": "hostile", "version": "1"}
        return {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": server_info}
    if method == "tools/list" and sys.argv[1] == "pages":
        time.sleep(0.6)
        return {"tools": [], "nextCursor": "more"}
    if method == "tools/list":
        return {"tools": [TOOL]}
    return {"content": [{"type": "text", "text": json.dumps(params)}]}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/initialized":
            ONCE_MET.get(sys.argv[1], lambda: None)()
        elif message.get("method") == "server/discover":
            say({"id": message["id"], "error": {"code": -32601, "message": "what?"}})
        elif message.get("method") == "tools/call" and sys.argv[1].startswith("-"):
            say({"id": message["id"], "error": {"code": int(sys.argv[1]), "message": "of my own"}})
        elif "id" in message:
            say({"id": message["id"], "result": _answer(message["method"], message.get("params") or {})})


if __name__ == "__main__":
    main()
