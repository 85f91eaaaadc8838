"""What is inside the messages of real A2A agents: text, data and file parts, read as payloads.

Pure functions: `read_parts` takes what a proxy has parsed, and gives what the guards look at.
"""

from qwed_a2a.payloads.parts import Contents, DataPart, FilePart, Part, Payload, TextPart, Unread
from qwed_a2a.payloads.reading import read_parts

__all__ = ["Contents", "DataPart", "FilePart", "Part", "Payload", "TextPart", "Unread", "read_parts"]
