"""The report as one JSON object, in chunks: what is known at once, then each activity as it is read."""

from collections.abc import Iterable, Iterator

import msgspec

from qwed.reports.data import ReportData, in_chunks

MEDIA = "application/json"
CHUNK = 1 << 16
_encode = msgspec.json.Encoder().encode


def json_chunks(data: ReportData, activities: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of the report; `activities` are JSON objects and stand in its last member."""
    members = _encode(msgspec.structs.replace(data, attestations=()))
    yield members.removesuffix(b'"attestations":[]}') + b'"attestations":['
    yield from _attestations(data)
    yield b'],"activities":['
    yield from gathered(_separated(activities))
    yield b"]}\n"


def _attestations(data: ReportData) -> Iterator[bytes]:
    comma = b""
    for chunk in in_chunks(data.attestations):
        yield comma + _encode(chunk)[1:-1]
        comma = b","


def _separated(activities: Iterable[bytes]) -> Iterator[bytes]:
    comma = b"\n"
    for activity in activities:
        yield comma + activity
        comma = b",\n"


def gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
