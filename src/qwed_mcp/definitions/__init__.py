"""What a server says of its tools: pinned when first seen, held when it changes or tries to instruct."""

from qwed_mcp.definitions.book import Book
from qwed_mcp.definitions.held import Held, Screened
from qwed_mcp.definitions.pages import BookError

__all__ = ["Book", "BookError", "Held", "Screened"]
