"""Pin registry of one server: its tool definitions as first listed or as released by a person."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from mcp_types import Tool

from qwed_mcp.tool_pinning.lookalikes import KnownTool
from qwed_mcp.tool_pinning.pin_file import (
    PinFile,
    PinFileError,
    ensure_private_directory,
    lock_pin_file,
    other_pinned_names,
    pin_file_path,
    read_pin_file,
    write_pin_file,
)
from qwed_mcp.tool_pinning.quarantined import QuarantinedTool, ScreeningResult
from qwed_mcp.tool_pinning.screen import screen_tools, with_release


class PinRegistry:
    """Pins of one server; every call reads and atomically rewrites the file, so processes can share it."""

    def __init__(self, file: Path, server: str) -> None:
        self._file = file
        self.server = server

    @classmethod
    def open(cls, directory: Path, server: str) -> Self:
        """Open the registry of `server` in `directory`; raise PinFileError if it cannot be trusted."""
        file = pin_file_path(directory, server)
        ensure_private_directory(directory)
        registry = cls(file, server)
        with lock_pin_file(file):
            registry._read()
        return registry

    def screen(self, tools: Sequence[Tool]) -> ScreeningResult:
        """Screen the complete listing of the server; tools that pass for the first time are pinned."""
        with lock_pin_file(self._file):
            pinned = self._read()
            screened, after = screen_tools(pinned, tools, self._other_tools())
            self._save(pinned, after)
        return screened

    def release(self, tool: QuarantinedTool, by: str) -> None:
        """Pin exactly the quarantined definition on behalf of `by`; raise PinFileError if it cannot be released."""
        if not tool.releasable or not tool.digest or tool.server != self.server:
            raise PinFileError("this definition cannot be released: the server has to change it")
        with lock_pin_file(self._file):
            pinned = self._read()
            self._save(pinned, with_release(pinned, tool, by))

    def _read(self) -> PinFile:
        return read_pin_file(self._file, self.server) or PinFile(self.server)

    def _save(self, before: PinFile, after: PinFile) -> None:
        if after != before:
            write_pin_file(self._file, after)

    def _other_tools(self) -> Iterator[KnownTool]:
        for server, name in other_pinned_names(self._file):
            yield KnownTool(name, f"a tool of `{server}`", same_server=False)
