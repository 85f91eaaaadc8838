"""What a server is called where nobody names it: a plain word of its command or its address."""

from collections.abc import Sequence

from qwed.proxies.naming import host_name, plain_name

_RUNNERS = frozenset(
    {"npx", "npm", "node", "bunx", "bun", "deno", "pnpm", "yarn", "uv", "uvx", "pipx", "python", "python3"}
    | {"docker", "podman", "run", "exec", "env", "sh", "dlx", "x", "tool"}
)
_ENDINGS = (".py", ".js", ".mjs", ".cjs", ".ts", ".exe", ".sh")
_DEFAULT = "server"


def name_of(command: Sequence[str], url: str | None) -> str:
    """The name, such as `server-filesystem` of `npx -y @modelcontextprotocol/server-filesystem /tmp`."""
    if url is not None:
        return host_name(url, _DEFAULT)
    words = [word for word in command if not word.startswith("-")]
    told = [word for word in words if _base(word) not in _RUNNERS]
    return plain_name(_base(told[0] if told else words[0] if words else ""), _DEFAULT)


def _base(word: str) -> str:
    """The last part of a path or of a package's name, without its version and its ending."""
    last = word.rstrip("/\\").replace("\\", "/").rpartition("/")[2].partition("@")[0].partition("=")[0]
    for ending in _ENDINGS:
        last = last.removesuffix(ending)
    return last.lower()


def whole_name(server: str, tool: str) -> str:
    """The name under which the kernel knows a server's tool."""
    return f"mcp__{server}__{tool}"
