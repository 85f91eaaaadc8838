"""What a server is called where nobody names it: a plain word of its command or its address."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

LONGEST = 40
_PLAIN = re.compile(r"[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*")
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")
_RUNNERS = frozenset(
    {"npx", "npm", "node", "bunx", "bun", "deno", "pnpm", "yarn", "uv", "uvx", "pipx", "python", "python3"}
    | {"docker", "podman", "run", "exec", "env", "sh", "dlx", "x", "tool"}
)
_ENDINGS = (".py", ".js", ".mjs", ".cjs", ".ts", ".exe", ".sh")


def is_name(text: str) -> bool:
    """Whether a server can be called so: short, plain, without `_`, which divides a tool's whole name."""
    return len(text) <= LONGEST and _PLAIN.fullmatch(text) is not None


def name_of(command: Sequence[str], url: str | None) -> str:
    """The name, such as `server-filesystem` of `npx -y @modelcontextprotocol/server-filesystem /tmp`."""
    if url is not None:
        return _plain(urlsplit(url).hostname or "")
    words = [word for word in command if not word.startswith("-")]
    told = [word for word in words if _base(word) not in _RUNNERS]
    return _plain(_base(told[0] if told else words[0] if words else ""))


def _base(word: str) -> str:
    """The last part of a path or of a package's name, without its version and its ending."""
    last = word.rstrip("/\\").replace("\\", "/").rpartition("/")[2].partition("@")[0].partition("=")[0]
    for ending in _ENDINGS:
        last = last.removesuffix(ending)
    return last.lower()


def _plain(text: str) -> str:
    return _NOT_PLAIN.sub("-", text.lower()).strip("-")[:LONGEST].strip("-") or "server"


def whole_name(server: str, tool: str) -> str:
    """The name under which the kernel knows a server's tool."""
    return f"mcp__{server}__{tool}"
