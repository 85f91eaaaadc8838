"""What requests to the engine endpoints look like, for the API document."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from qwed.api.shapes import EngineName, Shape, Subject
from qwed.kernel.inquiries.jobs import MOST_ITEMS, MOST_PARALLEL
from qwed.kernel.inquiries.reading import DEFAULT_MS, LONGEST_MS, SHORTEST_MS


class EngineOptionsShape(Shape):
    """How long it may take, and whether a signed statement is wanted."""

    timeout_ms: Annotated[int, Meta(ge=SHORTEST_MS, le=LONGEST_MS)] = DEFAULT_MS
    include_attestation: bool = False


class MathParams(Shape):
    """What the math engine may be told besides."""

    operation: str | None = None
    claimed_result: Any = None
    tolerance: str | float | None = None
    assumptions: Any = None
    unit: str | None = None


class LogicParams(Shape):
    """Premises and a conclusion, in place of a formula."""

    premises: list[str] | str | None = None
    conclusion: str | None = None


class CodeParams(Shape):
    """`python`, if nothing is said, `javascript`, `typescript`, `bash` or `sql`."""

    language: str | None = None


class SqlParams(Shape):
    """What the query may touch."""

    schema_ddl: str | None = None
    dialect: str | None = None
    allowed_tables: list[str] | None = None
    allow_mutation: bool | None = None


class FactParams(Shape):
    """The text that the claim must be found in."""

    context: str | None = None


class StatsParams(Shape):
    """The file, and what it is: `csv`, `tsv`, `json` or `parquet`."""

    content_base64: str | None = None
    format: str | None = None


class ImageParams(Shape):
    """The file."""

    content_base64: str | None = None


class ConsensusParams(Shape):
    """`single`, `high` or `maximum`, and a confidence from 0 to 1."""

    verification_mode: str | None = None
    min_confidence: float | None = None


class AnyParams(msgspec.Struct, kw_only=True):
    """The parameters of whichever engine is found; where `type` names a pack, the values of its check."""

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


class VerifyAnyShape(Shape):
    """Any input. `type` names the engine, else the shape of `query` tells it; `operation` names a pack's check."""

    query: str | None = None
    type: EngineName | None = None
    operation: str | None = None
    params: AnyParams | None = None
    options: EngineOptionsShape | None = None


class VerifyMathShape(MathParams, kw_only=True):
    """A claim such as `2+2 = 4`, an expression, or an operation with its claimed result."""

    expression: str
    params: MathParams | None = None
    options: EngineOptionsShape | None = None


class VerifyLogicShape(LogicParams, kw_only=True):
    """A formula, or premises and a conclusion."""

    query: str | None = None
    params: LogicParams | None = None
    options: EngineOptionsShape | None = None


class VerifyCodeShape(CodeParams, kw_only=True):
    """Code in one of the languages."""

    code: str
    params: CodeParams | None = None
    options: EngineOptionsShape | None = None


class VerifySqlShape(SqlParams, kw_only=True):
    """A query, and what it may touch."""

    query: str
    params: SqlParams | None = None
    options: EngineOptionsShape | None = None


class VerifyFactShape(FactParams, kw_only=True):
    """A claim; `context` is needed, here or in `params`."""

    claim: str
    params: FactParams | None = None
    options: EngineOptionsShape | None = None


class VerifyStatsShape(StatsParams, kw_only=True):
    """A claim about a table; `content_base64` is needed, here or in `params`."""

    query: str
    params: StatsParams | None = None
    options: EngineOptionsShape | None = None


class VerifyImageShape(ImageParams, kw_only=True):
    """A claim about an image; `content_base64` is needed, here or in `params`."""

    claim: str
    params: ImageParams | None = None
    options: EngineOptionsShape | None = None


class VerifyConsensusShape(ConsensusParams, kw_only=True):
    """A claim, and how many independent methods must agree on it."""

    query: str
    params: ConsensusParams | None = None
    options: EngineOptionsShape | None = None


class BatchItemShape(Shape):
    """One input; without a type its shape says which engine reads it."""

    query: str | None = None
    type: EngineName | None = None
    operation: str | None = None
    params: AnyParams | None = None


class BatchOptionsShape(Shape):
    """How many items at once, whether the first that is not VERIFIED ends the job, and whom the job is about."""

    max_parallel: Annotated[int, Meta(ge=1, le=MOST_PARALLEL)] = MOST_PARALLEL
    fail_fast: bool = False
    subject: Subject | None = None


class BatchShape(Shape):
    """A job."""

    items: Annotated[list[BatchItemShape], Meta(min_length=1, max_length=MOST_ITEMS)]
    options: BatchOptionsShape | None = None
