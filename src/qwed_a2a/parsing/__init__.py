"""Parser for the parts of A2A messages: text, data and file parts become payloads for the guards.

Pure functions: `read_parts` takes parsed parts and returns payloads.
"""

from qwed_a2a.parsing.payload_types import Contents, DataPart, FilePart, Part, Payload, TextPart, UnparsableMessage
from qwed_a2a.parsing.reader import read_parts

__all__ = ["Contents", "DataPart", "FilePart", "Part", "Payload", "TextPart", "UnparsableMessage", "read_parts"]
