"""`qwed-mcp` with a sandbox that holds nothing back: `python -m tests.support.mcp_server [options]`."""

import sys

import qwed_mcp.sandbox
from qwed_mcp.command import main
from tests.support.plain_sandbox import plain

qwed_mcp.sandbox.sandbox_from = lambda _settings: plain  # type: ignore[attr-defined]

if __name__ == "__main__":
    sys.exit(main())
