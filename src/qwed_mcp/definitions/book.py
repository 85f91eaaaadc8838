"""The pins of one server: what its tools were when they were first seen, or when somebody released them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from mcp_types import Tool

from qwed_mcp.definitions.held import Held, Screened
from qwed_mcp.definitions.judging import judge, released
from qwed_mcp.definitions.names import Known
from qwed_mcp.definitions.pages import (
    BookError,
    Pages,
    locked,
    names_beside,
    place_of,
    private,
    read_pages,
    write_pages,
)


class Book:
    """What is pinned of one server. Every call reads the file and leaves it whole, so processes can share one."""

    def __init__(self, file: Path, server: str) -> None:
        self._file = file
        self.server = server

    @classmethod
    def open(cls, directory: Path, server: str) -> Self:
        """The book of `server` among the books of all servers in `directory`; BookError where it cannot be trusted."""
        file = place_of(directory, server)
        private(directory)
        book = cls(file, server)
        with locked(file):
            book._pages()
        return book

    def screen(self, tools: Sequence[Tool]) -> Screened:
        """The whole listing of the server, all pages of it, told apart; what passes for the first time is pinned."""
        with locked(self._file):
            pages = self._pages()
            screened, after = judge(pages, tools, self._beside())
            self._keep(pages, after)
        return screened

    def release(self, held: Held, by: str) -> None:
        """Pin exactly what was held, on the word of `by`; BookError for what nobody can release."""
        if not held.releasable or not held.digest or held.server != self.server:
            raise BookError("this definition cannot be released: it has to be changed by the server")
        with locked(self._file):
            pages = self._pages()
            self._keep(pages, released(pages, held, by))

    def _pages(self) -> Pages:
        return read_pages(self._file, self.server) or Pages(self.server)

    def _keep(self, before: Pages, after: Pages) -> None:
        if after != before:
            write_pages(self._file, after)

    def _beside(self) -> Iterator[Known]:
        for server, name in names_beside(self._file):
            yield Known(name, f"a tool of `{server}`", here=False)
