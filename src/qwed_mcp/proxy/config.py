"""What an MCP client is told to start: this very command, with every secret left out."""

import json
import os
import shutil
from collections.abc import Sequence

from qwed_mcp.proxy.options import Options

_PLAIN = ("QWED_BASE_URL", "QWED_AGENT_ID")
_SECRET = ("QWED_AGENT_TOKEN", "QWED_API_KEY")
_SELF = "--print-config"


def client_config(options: Options, given: Sequence[str], header_env: Sequence[str]) -> str:
    """The JSON that most clients take, as `mcpServers`."""
    program, *arguments = given
    server = {
        # The whole path: a client that is started from a desktop has another PATH.
        "command": shutil.which(program) or os.path.abspath(program),
        "args": _without(arguments),
        "env": _environment(header_env),
    }
    return json.dumps({"mcpServers": {options.name: server}}, indent=2)


def _without(arguments: list[str]) -> list[str]:
    """The arguments without the one that asked for this; behind `--` they are the server's own."""
    ends = arguments.index("--") if "--" in arguments else len(arguments)
    return [each for each in arguments[:ends] if each != _SELF] + arguments[ends:]


def _environment(header_env: Sequence[str]) -> dict[str, str]:
    plain = {name: os.environ[name] for name in _PLAIN if os.environ.get(name)}
    held = [each.partition("=")[2].strip() for each in header_env]
    secret = [name for name in _SECRET if os.environ.get(name)] + held
    return plain | {name: f"<{name}>" for name in secret}
