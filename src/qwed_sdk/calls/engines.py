"""INTERFACES 2: a claim and its verdict."""

import base64
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qwed.words.written import written
from qwed_sdk.errors import QWEDArgumentError, QWEDRequestError
from qwed_sdk.records import Batch, Result
from qwed_sdk.wire import Call, Pause, ask, at, given, seconds

LARGEST_FILE = 10 << 20
"""Bytes the server takes of a file."""
LONGEST_MS = 60_000
_BETWEEN_LOOKS = 0.25
_LONGEST_LOOK = 2.0

File = str | os.PathLike[str] | bytes
"""A path, or the content itself."""


def verify(
    query: str | None = None,
    *,
    type: str | None = None,  # noqa: A002 - the protocol calls it so
    operation: str | None = None,
    params: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Call[Result]:
    """Verify any claim. `type` names the engine; without it the shape of the query does, and `result["routed"]` why."""
    values = None if params is None else written(params)
    fields = {"type": type, "operation": operation, "params": values, "options": options}
    return (yield from _verdict("/verify", query=query, **fields))


def verify_legal(
    operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
) -> Call[Result]:
    """Verify a deadline, a citation, a cap, a choice of law, a limitation or a provenance: `operation` says which."""
    return (yield from verify(query, type="legal", operation=operation, params=values, options=options))


def verify_finance(
    operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
) -> Call[Result]:
    """Verify interest, a loan, cash flows, a banking scenario or a payment message: `operation` says which."""
    return (yield from verify(query, type="finance", operation=operation, params=values, options=options))


def verify_ucp(
    operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
) -> Call[Result]:
    """Verify a cart, a checkout or an order of the Universal Commerce Protocol: `operation` says which."""
    return (yield from verify(query, type="ucp", operation=operation, params=values, options=options))


def verify_tax(
    operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
) -> Call[Result]:
    """Verify payroll, a sales tax, a GST or a tax on crypto: `operation` says which."""
    return (yield from verify(query, type="tax", operation=operation, params=values, options=options))


def verify_math(
    expression: str,
    *,
    operation: str | None = None,
    claimed_result: Any = None,
    tolerance: str | float | None = None,
    assumptions: Any = None,
    unit: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Call[Result]:
    """Verify an equality, or with `operation` and `claimed_result` a computation."""
    return (
        yield from _verdict(
            "/verify/math",
            expression=expression,
            operation=operation,
            claimed_result=claimed_result,
            tolerance=tolerance,
            assumptions=assumptions,
            unit=unit,
            options=options,
        )
    )


def verify_logic(
    query: str | None = None,
    *,
    premises: Sequence[str] | str | None = None,
    conclusion: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Call[Result]:
    """Verify a formula of the QWED-Logic DSL, or that `premises` entail a `conclusion`."""
    listed = premises if premises is None or isinstance(premises, str) else list(premises)
    return (yield from _verdict("/verify/logic", query=query, premises=listed, conclusion=conclusion, options=options))


def verify_code(code: str, language: str = "python", *, options: Mapping[str, Any] | None = None) -> Call[Result]:
    """Verify that code is pure computation: no file, process, network or dynamic code."""
    return (yield from _verdict("/verify/code", code=code, language=language, options=options))


def verify_sql(
    query: str,
    schema_ddl: str | None = None,
    dialect: str = "sqlite",
    *,
    allowed_tables: Sequence[str] | None = None,
    allow_mutation: bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> Call[Result]:
    """Verify that a query fits the schema and only reads, and nothing it should not."""
    tables = None if allowed_tables is None else list(allowed_tables)
    return (
        yield from _verdict(
            "/verify/sql",
            query=query,
            schema_ddl=schema_ddl,
            dialect=dialect,
            allowed_tables=tables,
            allow_mutation=allow_mutation,
            options=options,
        )
    )


def verify_fact(claim: str, context: str, *, options: Mapping[str, Any] | None = None) -> Call[Result]:
    """Verify that the context says so."""
    return (yield from _verdict("/verify/fact", claim=claim, context=context, options=options))


def verify_stats(
    query: str,
    file_path: File,
    *,
    format: str | None = None,  # noqa: A002 - the protocol calls it so
    options: Mapping[str, Any] | None = None,
) -> Call[Result]:
    """Verify a claim about the table in a file: csv, tsv, json or parquet."""
    content = _content(file_path)
    return (yield from _verdict("/verify/stats", query=query, content_base64=content, format=format, options=options))


def verify_image(image_path: File, claim: str, *, options: Mapping[str, Any] | None = None) -> Call[Result]:
    """Verify a claim about an image."""
    return (yield from _verdict("/verify/image", claim=claim, content_base64=_content(image_path), options=options))


def verify_consensus(
    query: str, mode: str = "single", min_confidence: float = 0.8, *, options: Mapping[str, Any] | None = None
) -> Call[Result]:
    """Verify by independent methods: `single`, `high` or `maximum`."""
    return (
        yield from _verdict(
            "/verify/consensus", query=query, verification_mode=mode, min_confidence=min_confidence, options=options
        )
    )


def verify_batch(
    items: Sequence[str | Mapping[str, Any]],
    options: Mapping[str, Any] | None = None,
    *,
    wait: bool = True,
    timeout: float = 3600.0,
) -> Call[Batch]:
    """Verify up to 100 items, each a query or `{query?, type?, operation?, params?}`.

    The job once it is over, or as it stands after `timeout` seconds; without `wait` as it has begun.
    """
    ends = time.monotonic() + seconds(timeout, "timeout")
    if isinstance(items, str | Mapping):
        raise QWEDArgumentError("`items` is a list of queries, not one of them")
    listed = [{"query": item} if isinstance(item, str) else written(item) for item in items]
    batch = Batch(
        (
            yield from ask(
                "POST", "/verify/batch", given(items=listed, options=options), patience=30.0, must_have="job_id"
            )
        )
    )
    pause = _BETWEEN_LOOKS
    while wait and not batch.is_over and time.monotonic() < ends:
        yield Pause(pause)
        pause = min(pause * 1.5, _LONGEST_LOOK)
        batch = yield from get_batch_status(batch.job_id)
    return batch


def get_batch_status(job_id: str) -> Call[Batch]:
    """The job as it stands now."""
    return Batch((yield from ask("GET", at("verify", "batch", job_id), must_have="job_id")))


def _verdict(path: str, **fields: Any) -> Call[Result]:
    # Asking an engine changes nothing, so it may be asked again.
    options = fields.get("options") or {}
    milliseconds = options.get("timeout_ms")
    # More than the server grants is refused by it at once.
    patience = min(max(milliseconds, 0), LONGEST_MS) / 1000 if isinstance(milliseconds, int) else 0.0
    return Result(
        (yield from ask("POST", path, given(**fields), repeatable=True, patience=patience, must_have="status"))
    )


def _content(file: File) -> str:
    data = file if isinstance(file, bytes) else _read(Path(file))
    if len(data) > LARGEST_FILE:
        raise QWEDRequestError(f"a file may have {LARGEST_FILE} bytes, this one has more")
    return base64.b64encode(data).decode()


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise QWEDRequestError(f"`{path}` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise QWEDRequestError(f"this path cannot be read: {error}") from None
