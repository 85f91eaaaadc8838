"""The engines on their own, and the tools that agents may call."""

from qwed.api import engine_shapes, shapes, tools, verify
from qwed.api.routes.row import BODY, ENGINE, KEY, E, Route
from qwed.kernel.inquiries.finding import Finding
from qwed.kernel.inquiries.jobs import JobView
from qwed.kernel.tools import Tool

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/verify",
        verify.verify_any,
        "Verify any input; `type`, or else its shape, says which engine reads it",
        Finding,
        engine_shapes.VerifyAnyShape,
        errors=ENGINE,
    ),
    *(
        Route(
            "POST",
            f"/verify/{engine}",
            verify.verified_by(engine),
            summary,
            Finding,
            shape,
            errors=ENGINE,
            uploads=engine in ("stats", "image"),
        )
        for engine, summary, shape in (
            ("math", "Verify a claim, or compute an expression, exactly", engine_shapes.VerifyMathShape),
            ("logic", "Is it satisfiable, or do the premises entail the conclusion?", engine_shapes.VerifyLogicShape),
            ("code", "Is this code pure computation?", engine_shapes.VerifyCodeShape),
            ("sql", "Does this query only read, and nothing it should not?", engine_shapes.VerifySqlShape),
            ("fact", "Does the context say so?", engine_shapes.VerifyFactShape),
            (
                "stats",
                "Does the table bear out the claim? Takes a form too",
                engine_shapes.VerifyStatsShape,
            ),
            (
                "image",
                "Does the image bear out the claim? Takes a form too",
                engine_shapes.VerifyImageShape,
            ),
            ("consensus", "Do independent methods agree on it?", engine_shapes.VerifyConsensusShape),
        )
    ),
    Route(
        "POST",
        "/verify/batch",
        verify.verify_batch,
        "Verify up to 100 items; a job that takes long is answered with 202 and goes on",
        JobView,
        engine_shapes.BatchShape,
        errors=(*KEY, *BODY, E.UNKNOWN_TYPE, E.BAD_OPTION, E.RATE_LIMITED),
        also=(202,),
    ),
    Route(
        "GET",
        "/verify/batch/{job_id}",
        verify.get_batch,
        "How far a batch is, and its answers so far",
        JobView,
        errors=(*KEY, E.NOT_FOUND),
    ),
    Route("GET", "/tools", tools.list_tools, "The tool registry (spec 5.3)", shapes.ToolsShape, errors=KEY),
    Route(
        "PUT",
        "/tools/{name}",
        tools.put_tool,
        "Describe a tool and make it known",
        Tool,
        shapes.ToolShape,
        errors=(*KEY, *BODY),
    ),
)
