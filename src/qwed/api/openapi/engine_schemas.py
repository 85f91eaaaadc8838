"""Request schemas of the engine endpoints, for the OpenAPI document."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from qwed.api.openapi.schemas import EngineName, RequestShape, Subject
from qwed.kernel.verification.batch_jobs import MAX_ITEMS, MAX_PARALLEL
from qwed.kernel.verification.request import DEFAULT_MS, LONGEST_MS, SHORTEST_MS


class EngineOptionsShape(RequestShape):
    """Timeout, and whether to return a signed attestation."""

    timeout_ms: Annotated[int, Meta(ge=SHORTEST_MS, le=LONGEST_MS)] = DEFAULT_MS
    include_attestation: bool = False


class MathParams(RequestShape):
    """Further parameters of the math engine."""

    operation: str | None = None
    claimed_result: Any = None
    tolerance: str | float | None = None
    assumptions: Any = None
    unit: str | None = None


class LogicParams(RequestShape):
    """Premises and a conclusion, in place of a formula."""

    premises: list[str] | str | None = None
    conclusion: str | None = None


class CodeParams(RequestShape):
    """Language: `python` (default), `javascript`, `typescript`, `bash` or `sql`."""

    language: str | None = None


class SqlParams(RequestShape):
    """Tables and operations that the query may use."""

    schema_ddl: str | None = None
    dialect: str | None = None
    allowed_tables: list[str] | None = None
    allow_mutation: bool | None = None


class FactParams(RequestShape):
    """Text that the claim is checked against."""

    context: str | None = None


class StatsParams(RequestShape):
    """File and its format: `csv`, `tsv`, `json` or `parquet`."""

    content_base64: str | None = None
    format: str | None = None


class ImageParams(RequestShape):
    """Image file."""

    content_base64: str | None = None


class ConsensusParams(RequestShape):
    """Mode `single`, `high` or `maximum`, and a confidence from 0 to 1."""

    verification_mode: str | None = None
    min_confidence: float | None = None


class AnyParams(msgspec.Struct, kw_only=True):
    """Parameters of the detected engine; if `type` names a pack, the values of its check."""

    operation: str | None = None
    claimed_result: Any = None
    tolerance: str | float | None = None
    assumptions: Any = None
    unit: str | None = None
    premises: list[str] | str | None = None
    conclusion: str | None = None
    language: str | None = None
    schema_ddl: str | None = None
    dialect: str | None = None
    allowed_tables: list[str] | None = None
    allow_mutation: bool | None = None
    context: str | None = None
    content_base64: str | None = None
    format: str | None = None
    verification_mode: str | None = None
    min_confidence: float | None = None


class VerifyAnyShape(RequestShape):
    """Any input. `type` names the engine, otherwise it is detected; `operation` names a check of a pack."""

    query: str | None = None
    type: EngineName | None = None
    operation: str | None = None
    params: AnyParams | None = None
    options: EngineOptionsShape | None = None


class VerifyMathShape(MathParams, kw_only=True):
    """Claim such as `2+2 = 4`, expression, or operation with its claimed result."""

    expression: str
    params: MathParams | None = None
    options: EngineOptionsShape | None = None


class VerifyLogicShape(LogicParams, kw_only=True):
    """Formula, or premises and a conclusion."""

    query: str | None = None
    params: LogicParams | None = None
    options: EngineOptionsShape | None = None


class VerifyCodeShape(CodeParams, kw_only=True):
    """Code in one of the supported languages."""

    code: str
    params: CodeParams | None = None
    options: EngineOptionsShape | None = None


class VerifySqlShape(SqlParams, kw_only=True):
    """Query, and the tables and operations it may use."""

    query: str
    params: SqlParams | None = None
    options: EngineOptionsShape | None = None


class VerifyFactShape(FactParams, kw_only=True):
    """Claim; `context` is required, here or in `params`."""

    claim: str
    params: FactParams | None = None
    options: EngineOptionsShape | None = None


class VerifyStatsShape(StatsParams, kw_only=True):
    """Claim about a table; `content_base64` is required, here or in `params`."""

    query: str
    params: StatsParams | None = None
    options: EngineOptionsShape | None = None


class VerifyImageShape(ImageParams, kw_only=True):
    """Claim about an image; `content_base64` is required, here or in `params`."""

    claim: str
    params: ImageParams | None = None
    options: EngineOptionsShape | None = None


class VerifyConsensusShape(ConsensusParams, kw_only=True):
    """Claim, and how many independent methods must agree on it."""

    query: str
    params: ConsensusParams | None = None
    options: EngineOptionsShape | None = None


class BatchItemShape(RequestShape):
    """One input; without `type` the engine is detected."""

    query: str | None = None
    type: EngineName | None = None
    operation: str | None = None
    params: AnyParams | None = None


class BatchOptionsShape(RequestShape):
    """Parallelism, whether to stop at the first item that is not VERIFIED, and the subject of the content."""

    max_parallel: Annotated[int, Meta(ge=1, le=MAX_PARALLEL)] = MAX_PARALLEL
    fail_fast: bool = False
    subject: Subject | None = None


class BatchShape(RequestShape):
    """Batch job."""

    items: Annotated[list[BatchItemShape], Meta(min_length=1, max_length=MAX_ITEMS)]
    options: BatchOptionsShape | None = None
