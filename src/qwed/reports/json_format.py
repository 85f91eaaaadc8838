"""JSON writer of a report: one object in chunks, activities last."""

from collections.abc import Iterable, Iterator

import msgspec

from qwed.reports.report_data import ReportData, in_chunks

MEDIA = "application/json"
CHUNK = 1 << 16
_encode = msgspec.json.Encoder().encode


def json_chunks(data: ReportData, activities: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the report as JSON; `activities` are encoded objects of its last member."""
    members = _encode(msgspec.structs.replace(data, attestations=()))
    yield members.removesuffix(b'"attestations":[]}') + b'"attestations":['
    yield from _attestations(data)
    yield b'],"activities":['
    yield from coalesce_chunks(_separated(activities))
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


def coalesce_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in fewer, larger pieces."""
    buffer: list[bytes] = []
    size = 0
    for piece in pieces:
        buffer.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield b"".join(buffer)
            buffer, size = [], 0
    if buffer:
        yield b"".join(buffer)
