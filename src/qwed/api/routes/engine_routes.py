"""Routes of the verification engines and of the tool registry."""

from qwed.api.handlers import tools, verify
from qwed.api.openapi import engine_schemas, schemas
from qwed.api.routes.route import BODY, ENGINE, KEY, E, Route
from qwed.kernel.tools import Tool
from qwed.kernel.verification.batch_jobs import JobView
from qwed.kernel.verification.response import VerificationResult

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/verify",
        verify.verify_any,
        "Verify any input; the engine is taken from `type` or detected",
        VerificationResult,
        engine_schemas.VerifyAnyShape,
        errors=ENGINE,
    ),
    *(
        Route(
            "POST",
            f"/verify/{engine}",
            verify.verify_handler(engine),
            summary,
            VerificationResult,
            shape,
            errors=ENGINE,
            uploads=engine in ("stats", "image"),
        )
        for engine, summary, shape in (
            ("math", "Verify or compute a mathematical expression", engine_schemas.VerifyMathShape),
            ("logic", "Check satisfiability or entailment", engine_schemas.VerifyLogicShape),
            ("code", "Verify that code is pure computation", engine_schemas.VerifyCodeShape),
            ("sql", "Verify that a SQL query only reads permitted data", engine_schemas.VerifySqlShape),
            ("fact", "Verify a claim against a text", engine_schemas.VerifyFactShape),
            (
                "stats",
                "Verify a claim against a table; accepts a form upload",
                engine_schemas.VerifyStatsShape,
            ),
            (
                "image",
                "Verify a claim against an image; accepts a form upload",
                engine_schemas.VerifyImageShape,
            ),
            ("consensus", "Verify a claim by independent methods", engine_schemas.VerifyConsensusShape),
        )
    ),
    Route(
        "POST",
        "/verify/batch",
        verify.verify_batch,
        "Verify up to 100 items; a long job returns 202 and continues",
        JobView,
        engine_schemas.BatchShape,
        errors=(*KEY, *BODY, E.UNKNOWN_TYPE, E.BAD_OPTION, E.RATE_LIMITED),
        also=(202,),
    ),
    Route(
        "GET",
        "/verify/batch/{job_id}",
        verify.get_batch,
        "Get a batch job and its results so far",
        JobView,
        errors=(*KEY, E.NOT_FOUND),
    ),
    Route("GET", "/tools", tools.list_tools, "List registered tools (spec 5.3)", schemas.ToolsShape, errors=KEY),
    Route(
        "PUT",
        "/tools/{name}",
        tools.put_tool,
        "Register a tool",
        Tool,
        schemas.ToolShape,
        errors=(*KEY, *BODY),
    ),
)
