"""Uploads: `multipart/form-data` parsed into the fields of the JSON body, the file as base64."""

import base64
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from qwed.api.server.body import RequestRejectedError, malformed_error, parse_json
from qwed.api.server.endpoint import RequestContext
from qwed.kernel.answer import problem
from qwed.kernel.request import quoted
from qwed.model import ErrorCode

MAX_PARTS = 16
MAX_FIELD_BYTES = 64 << 10
_JSON_FIELDS = frozenset({"options", "params"})


def read_form(request: RequestContext) -> dict[str, Any]:
    """Parse a form; its one file becomes `content_base64`. Raise RequestRejectedError if it is invalid."""
    boundary = parse_options_header(request.header(b"content-type") or "")[1].get(b"boundary")
    if not boundary:
        raise malformed_error("the form has no boundary")
    fields: dict[str, Any] = {}
    for name, content, is_file in _FormParser(boundary).read(request.body):
        key = "content_base64" if is_file else name
        if key in fields:
            raise malformed_error(f"{quoted('file' if is_file else name)} is repeated in the form: send it once")
        fields[key] = _file(content, request) if is_file else _field(name, content)
    return fields


def _file(content: bytes, request: RequestContext) -> str:
    max_bytes = request.services.settings.max_upload_bytes
    if len(content) > max_bytes:
        raise RequestRejectedError(problem(ErrorCode.TOO_LARGE, f"the file is larger than {max_bytes} bytes"))
    return base64.b64encode(content).decode()


def _field(name: str, content: bytes) -> Any:
    if len(content) > MAX_FIELD_BYTES:
        raise RequestRejectedError(
            problem(ErrorCode.TOO_LARGE, f"{quoted(name)} is longer than {MAX_FIELD_BYTES} bytes")
        )
    if name in _JSON_FIELDS:
        return _json_field(name, content)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise malformed_error(f"{quoted(name)} is not UTF-8 text") from None


def _json_field(name: str, content: bytes) -> Any:
    """Parse a JSON field with the same checks as a body."""
    try:
        return parse_json(content)
    except RequestRejectedError as refused:
        raise RequestRejectedError(
            problem(ErrorCode.MALFORMED, f"`{name}` is not JSON: {refused.problem.message}")
        ) from None


class _FormParser:
    """Collects the parts of a form: name, content, whether it is a file."""

    def __init__(self, boundary: bytes) -> None:
        self._found: list[tuple[str, bytes, bool]] = []
        self._chunks: list[bytes] = []
        self._header: tuple[list[bytes], list[bytes]] = ([], [])
        self._disposition = b""
        self._ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_part_data": lambda data, start, end: self._chunks.append(data[start:end]),
                "on_part_end": self._end,
                "on_header_field": lambda data, start, end: self._header[0].append(data[start:end]),
                "on_header_value": lambda data, start, end: self._header[1].append(data[start:end]),
                "on_header_end": self._header_end,
                "on_end": self._finish,
            },
        )

    def read(self, body: bytes) -> list[tuple[str, bytes, bool]]:
        try:
            self._parser.write(body)
            self._parser.finalize()
        except FormParserError:
            raise malformed_error("the form is not valid multipart/form-data") from None
        if not self._ended:
            raise malformed_error("the form ends before its last boundary")
        return self._found

    def _begin(self) -> None:
        if len(self._found) >= MAX_PARTS:
            raise malformed_error(f"the form has more than {MAX_PARTS} parts")
        self._chunks, self._disposition = [], b""

    def _header_end(self) -> None:
        name, value = (b"".join(part) for part in self._header)
        self._header = ([], [])
        if name.lower() == b"content-disposition":
            self._disposition = value

    def _end(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise malformed_error("a part of the form has no name")
        name = options[b"name"].decode("utf-8", "replace")
        self._found.append((name, b"".join(self._chunks), b"filename" in options))

    def _finish(self) -> None:
        self._ended = True
