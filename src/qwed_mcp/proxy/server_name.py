"""Name of a server, derived from its command or URL if none is given."""

from collections.abc import Sequence

from qwed.proxies.server_name import server_name_from_url, to_server_name

_RUNNERS = frozenset(
    {"npx", "npm", "node", "bunx", "bun", "deno", "pnpm", "yarn", "uv", "uvx", "pipx", "python", "python3"}
    | {"docker", "podman", "run", "exec", "env", "sh", "dlx", "x", "tool"}
)
_SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".ts", ".exe", ".sh")
_DEFAULT = "server"


def derive_server_name(command: Sequence[str], url: str | None) -> str:
    """Return the name, such as `server-filesystem` for `npx -y @modelcontextprotocol/server-filesystem /tmp`."""
    if url is not None:
        return server_name_from_url(url, _DEFAULT)
    words = [word for word in command if not word.startswith("-")]
    candidates = [word for word in words if _base_name(word) not in _RUNNERS]
    return to_server_name(_base_name(candidates[0] if candidates else words[0] if words else ""), _DEFAULT)


def _base_name(word: str) -> str:
    """Return the last part of a path or package name, without version and suffix."""
    last = word.rstrip("/\\").replace("\\", "/").rpartition("/")[2].partition("@")[0].partition("=")[0]
    for ending in _SUFFIXES:
        last = last.removesuffix(ending)
    return last.lower()


def qualified_tool_name(server: str, tool: str) -> str:
    """Return the name by which the kernel knows a server's tool."""
    return f"mcp__{server}__{tool}"
