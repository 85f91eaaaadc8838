"""Operations that verify claims with the engines and domain packs (INTERFACES 2)."""

import base64
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qwed.model.endpoints import Endpoint
from qwed.model.json_encode import to_json_value
from qwed_sdk.errors import QWEDArgumentError, QWEDRequestError
from qwed_sdk.http_request import Operation, Pause, call, parse_seconds
from qwed_sdk.models import Batch, Result

MAX_FILE_BYTES = 10 << 20
"""Largest file that the server accepts."""
MAX_TIMEOUT_MS = 60_000
_FIRST_POLL_SECONDS = 0.25
_MAX_POLL_SECONDS = 2.0

File = str | os.PathLike[str] | bytes
"""Path of a file, or its content."""


def verify(
    query: str | None = None,
    *,
    type: str | None = None,  # noqa: A002 - the protocol calls it so
    operation: str | None = None,
    params: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Operation[Result]:
    """Verify a claim with the engine that `type` names, or that fits the query.

    Args:
        query: The claim.
        type: Name of the engine or domain pack; without it `result["routed"]` says which was chosen and why.
        operation: Check of a domain pack.
        params: Parameters of the engine or check.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: A value is missing or cannot be used.
    """
    values = None if params is None else to_json_value(params)
    fields = {"type": type, "operation": operation, "params": values, "options": options}
    return (yield from _request_result(Endpoint.VERIFY_ANY, query=query, **fields))


def verify_legal(
    operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
) -> Operation[Result]:
    """Verify a deadline, citation, liability cap, choice of law, limitation period or provenance.

    Args:
        operation: Name of the check.
        query: Text that the check reads, if it reads one.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.
        values: Values of the check by name; dates and decimals are sent in their written form.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: The check does not exist, or a value is missing or cannot be used.
    """
    return (yield from verify(query, type="legal", operation=operation, params=values, options=options))


def verify_finance(
    operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
) -> Operation[Result]:
    """Verify interest, a loan, cash flows, a banking scenario or a payment message.

    Args:
        operation: Name of the check.
        query: Text that the check reads, if it reads one.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.
        values: Values of the check by name; dates and decimals are sent in their written form.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: The check does not exist, or a value is missing or cannot be used.
    """
    return (yield from verify(query, type="finance", operation=operation, params=values, options=options))


def verify_ucp(
    operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
) -> Operation[Result]:
    """Verify a cart, checkout or order of the Universal Commerce Protocol.

    Args:
        operation: Name of the check.
        query: Text that the check reads, if it reads one.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.
        values: Values of the check by name; dates and decimals are sent in their written form.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: The check does not exist, or a value is missing or cannot be used.
    """
    return (yield from verify(query, type="ucp", operation=operation, params=values, options=options))


def verify_tax(
    operation: str, query: str | None = None, *, options: Mapping[str, Any] | None = None, **values: Any
) -> Operation[Result]:
    """Verify payroll, sales tax, GST or a tax on crypto assets.

    Args:
        operation: Name of the check.
        query: Text that the check reads, if it reads one.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.
        values: Values of the check by name; dates and decimals are sent in their written form.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: The check does not exist, or a value is missing or cannot be used.
    """
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
) -> Operation[Result]:
    """Verify an equality or inequality, or the result of a computation.

    Args:
        expression: The claim, such as `2 + 2 = 4`, or an expression with `operation`.
        operation: Computation to apply to the expression, such as `derivative`.
        claimed_result: Result that the computation must have.
        tolerance: Largest accepted difference, within the digits that the claim states.
        assumptions: What holds for the variables, such as `{"x": "positive"}`.
        unit: Unit of the result.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: A value is missing or cannot be used.
    """
    return (
        yield from _request_result(
            Endpoint.VERIFY_MATH,
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
) -> Operation[Result]:
    """Verify a formula of the QWED-Logic DSL, or that premises entail a conclusion.

    Args:
        query: The formula.
        premises: Sentences or formulas that are taken as true.
        conclusion: Sentence or formula that must follow from them.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: A value is missing or cannot be used.
    """
    sentences = premises if premises is None or isinstance(premises, str) else list(premises)
    return (
        yield from _request_result(
            Endpoint.VERIFY_LOGIC, query=query, premises=sentences, conclusion=conclusion, options=options
        )
    )


def verify_code(code: str, language: str = "python", *, options: Mapping[str, Any] | None = None) -> Operation[Result]:
    """Verify that code only computes: no file, process, network or dynamic code.

    Args:
        code: The source code.
        language: `python`, `javascript`, `typescript`, `bash` or `sql`.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: A value is missing or cannot be used.
    """
    return (yield from _request_result(Endpoint.VERIFY_CODE, code=code, language=language, options=options))


def verify_sql(
    query: str,
    schema_ddl: str | None = None,
    dialect: str = "sqlite",
    *,
    allowed_tables: Sequence[str] | None = None,
    allow_mutation: bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> Operation[Result]:
    """Verify that an SQL query only reads, and fits the schema.

    Args:
        query: The statement.
        schema_ddl: `CREATE TABLE` statements that it must fit.
        dialect: SQL dialect of the statement.
        allowed_tables: Tables that it may name; without it any.
        allow_mutation: Whether it may change data.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: A value is missing or cannot be used.
    """
    tables = None if allowed_tables is None else list(allowed_tables)
    return (
        yield from _request_result(
            Endpoint.VERIFY_SQL,
            query=query,
            schema_ddl=schema_ddl,
            dialect=dialect,
            allowed_tables=tables,
            allow_mutation=allow_mutation,
            options=options,
        )
    )


def verify_fact(claim: str, context: str, *, options: Mapping[str, Any] | None = None) -> Operation[Result]:
    """Verify that a text supports a claim.

    Args:
        claim: The claim.
        context: The text that must support it.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: A value is missing or cannot be used.
    """
    return (yield from _request_result(Endpoint.VERIFY_FACT, claim=claim, context=context, options=options))


def verify_stats(
    query: str,
    file_path: File,
    *,
    format: str | None = None,  # noqa: A002 - the protocol calls it so
    options: Mapping[str, Any] | None = None,
) -> Operation[Result]:
    """Verify a claim about the table in a file.

    Args:
        query: The claim, such as `average of price = 15`.
        file_path: Path of the file, or its content as bytes; at most 10 MiB.
        format: `csv`, `tsv`, `json` or `parquet`; without it the content decides.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: The file cannot be read, is too large, or a value cannot be used.
    """
    content = _base64_content(file_path)
    return (
        yield from _request_result(
            Endpoint.VERIFY_STATS, query=query, content_base64=content, format=format, options=options
        )
    )


def verify_image(image_path: File, claim: str, *, options: Mapping[str, Any] | None = None) -> Operation[Result]:
    """Verify a claim about an image.

    Args:
        image_path: Path of the image, or its content as bytes; at most 10 MiB.
        claim: The claim, such as `the width is 640 pixels`.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: The file cannot be read, is too large, or a value cannot be used.
    """
    return (
        yield from _request_result(
            Endpoint.VERIFY_IMAGE, claim=claim, content_base64=_base64_content(image_path), options=options
        )
    )


def verify_consensus(
    query: str, mode: str = "single", min_confidence: float = 0.8, *, options: Mapping[str, Any] | None = None
) -> Operation[Result]:
    """Verify a claim with independent methods.

    Args:
        query: The claim.
        mode: `single` (one method is enough), `high` (two must agree) or `maximum` (every method must agree).
        min_confidence: Lowest accepted confidence, from 0 to 1.
        options: `timeout_ms` (1,000 to 60,000; 30,000 by default) and `include_attestation`.

    Returns:
        The result. As a condition it is true for VERIFIED only.

    Raises:
        QWEDRequestError: A value is missing or cannot be used.
    """
    return (
        yield from _request_result(
            Endpoint.VERIFY_CONSENSUS,
            query=query,
            verification_mode=mode,
            min_confidence=min_confidence,
            options=options,
        )
    )


def verify_batch(
    items: Sequence[str | Mapping[str, Any]],
    options: Mapping[str, Any] | None = None,
    *,
    wait: bool = True,
    timeout: float = 3600.0,
) -> Operation[Batch]:
    """Verify up to 100 claims as one job, and wait until it is finished.

    Args:
        items: Claims, each a query or `{query, type, operation, params}`.
        options: `max_parallel` (1 to 10), `fail_fast` and `subject`.
        wait: Whether to wait for the end of the job.
        timeout: Seconds to wait at most.

    Returns:
        The job when it is finished, or its state after `timeout` seconds, or at once without `wait`. As a condition it
        is true if every item is VERIFIED.

    Raises:
        QWEDArgumentError: `items` is not a list.
        QWEDRequestError: There are too many items, or one cannot be used.
        QWEDRateLimitError: The organisation has too many unfinished jobs.
    """
    ends = time.monotonic() + parse_seconds(timeout, "timeout")
    if isinstance(items, str | Mapping):
        raise QWEDArgumentError("`items` must be a list of queries, not a single one")
    queries = [{"query": item} if isinstance(item, str) else to_json_value(item) for item in items]
    body = {"items": queries, "options": options}
    batch = yield from call(Batch, Endpoint.VERIFY_BATCH, body=body, patience=30.0, must_have="job_id")
    pause = _FIRST_POLL_SECONDS
    while wait and not batch.is_over and time.monotonic() < ends:
        yield Pause(pause)
        pause = min(pause * 1.5, _MAX_POLL_SECONDS)
        batch = yield from get_batch_status(batch.job_id)
    return batch


def get_batch_status(job_id: str) -> Operation[Batch]:
    """Return the current state of a batch job.

    Args:
        job_id: Id of the job.

    Returns:
        The job, with the answers so far.

    Raises:
        QWEDNotFoundError: The organisation has no job with this id, or it has expired.
    """
    return (yield from call(Batch, Endpoint.GET_BATCH, job_id, must_have="job_id"))


def _request_result(endpoint: Endpoint, **fields: Any) -> Operation[Result]:
    options = fields.get("options") or {}
    milliseconds = options.get("timeout_ms")
    # The server refuses a longer timeout at once.
    patience = min(max(milliseconds, 0), MAX_TIMEOUT_MS) / 1000 if isinstance(milliseconds, int) else 0.0
    # A verification changes nothing, so the request is repeatable.
    how: dict[str, Any] = {"repeatable": True, "patience": patience, "must_have": "status"}
    return (yield from call(Result, endpoint, body=fields, **how))


def _base64_content(file: File) -> str:
    data = file if isinstance(file, bytes) else _read_file(Path(file))
    if len(data) > MAX_FILE_BYTES:
        raise QWEDRequestError(f"the file is larger than {MAX_FILE_BYTES} bytes")
    return base64.b64encode(data).decode()


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise QWEDRequestError(f"`{path}` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise QWEDRequestError(f"this path cannot be read: {error}") from None
