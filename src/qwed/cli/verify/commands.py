"""Commands of the engines: their options and the requests they send."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from qwed.cli.backend import MAX_FILE, STDIN, Local, Target, Url, read_bytes, read_text, require_text
from qwed.cli.options import AsJson, DataDir
from qwed.cli.output import fail
from qwed.cli.verify.packs import pack_request
from qwed.cli.verify.run import PACKS, EngineRequest, OutputOptions, verify_and_show
from qwed.model.suggestions import closest_names, did_you_mean

_QUERY = "QUERY|-"
Query = Annotated[str | None, typer.Argument(metavar=_QUERY, help="text to verify, or `-` for standard input")]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[OPERATION [NAME=VALUE]...]",
        help="after the name of a pack (legal, finance, ucp, tax): check, values and a text; @FILE reads a file",
    ),
]
Claim = Annotated[str | None, typer.Argument(metavar="CLAIM|-", help="claim to verify, or `-` for standard input")]
File = Annotated[str | None, typer.Option("--file", "-f", metavar="FILE", help="read the text from this file")]
Seconds = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", help="time limit of the engine, 1 to 60 (default 30)")
]
Attest = Annotated[bool, typer.Option("--attest", help="request a signed attestation of the result")]


def _common_options(
    seconds: Seconds = None,
    attest: Attest = False,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
    local: Local = False,
) -> None:
    """Declare the options that every command takes."""


def _build_command(build_request: Callable[..., EngineRequest]) -> Callable[..., int]:
    """Return the command for a request function: its own options first, then the common ones."""

    def run(
        seconds: float | None, attest: bool, as_json: bool, url: str | None, data_dir: Any, local: bool, **own: Any
    ) -> int:
        return verify_and_show(
            build_request(**own), OutputOptions(seconds, attest, as_json), Target(url, data_dir, local)
        )

    own = inspect.signature(build_request).parameters.values()
    shared = inspect.signature(_common_options).parameters.values()
    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]  # typer reads it
    return run


def _any(query: Query = None, words: Words = None, file: File = None) -> EngineRequest:
    if query in PACKS:
        return pack_request(query, words or (), file)
    if words and closest_names(query, PACKS):
        fail(f"unknown pack `{query}`: {did_you_mean(query, PACKS)}the packs are {', '.join(PACKS)}")
    if words:
        fail(f"unexpected argument `{words[0][:60]}`: put the query in quotes, or name a pack: {', '.join(PACKS)}")
    return EngineRequest("verify", {"query": require_text(query, file, "the query")})


def _math(
    expression: Query = None,
    file: File = None,
    operation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="derivative, integral, simplify, solve or evaluate, with --claimed-result"),
    ] = None,
    claimed_result: Annotated[str | None, typer.Option(metavar="TEXT", help="expected result of the operation")] = None,
    tolerance: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="maximum difference, within the claim's digits")
    ] = None,
    assume: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="assumption about a variable, such as `x > 0`; repeatable")
    ] = None,
    unit: Annotated[str | None, typer.Option(metavar="UNIT", help="unit of the result")] = None,
) -> EngineRequest:
    fields = {
        "expression": require_text(expression, file, "the expression"),
        "operation": operation,
        "claimed_result": claimed_result,
        "tolerance": tolerance,
        "assumptions": assume or None,
        "unit": unit,
    }
    return EngineRequest("verify_math", fields)


def _logic(
    query: Query = None,
    file: File = None,
    premise: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="premise of an argument, with --conclusion; repeatable")
    ] = None,
    conclusion: Annotated[
        str | None, typer.Option(metavar="TEXT", help="conclusion that should follow from the premises")
    ] = None,
) -> EngineRequest:
    if conclusion is None and not premise:
        return EngineRequest("verify_logic", {"query": require_text(query, file, "the formula")})
    if query is not None or file is not None:
        fail("give either a formula, or --premise and --conclusion, not both")
    if conclusion is None:
        fail("--conclusion is missing: give the statement that should follow from the premises")
    return EngineRequest("verify_logic", {"premises": premise or [], "conclusion": conclusion})


def _code(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE|-", help="code to verify, or `-` for standard input")
    ] = None,
    file: File = None,
    language: Annotated[
        str | None,
        typer.Option("--language", "-l", metavar="NAME", help="python, javascript, typescript, bash or sql"),
    ] = None,
) -> EngineRequest:
    named = language or _LANGUAGES.get((file or "").rpartition(".")[2].lower(), "python")
    return EngineRequest("verify_code", {"code": require_text(code, file, "the code"), "language": named})


def _sql(
    query: Query = None,
    file: File = None,
    schema: Annotated[str | None, typer.Option(metavar="FILE", help="file with the CREATE TABLE statements")] = None,
    schema_ddl: Annotated[str | None, typer.Option(metavar="TEXT", help="CREATE TABLE statements")] = None,
    dialect: Annotated[
        str, typer.Option("--dialect", "-d", metavar="NAME", help="sqlite (the default), postgres, mysql, tsql, ...")
    ] = "sqlite",
    allow_table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="table that the query may use; repeatable; all others are then denied"),
    ] = None,
    allow_mutation: Annotated[bool, typer.Option("--allow-mutation", help="accept queries that write")] = False,
) -> EngineRequest:
    fields = {
        "query": require_text(query, file, "the query"),
        "schema_ddl": read_text(schema_ddl, schema, "the schema"),
        "dialect": dialect,
        "allowed_tables": allow_table or None,
        "allow_mutation": allow_mutation or None,
    }
    return EngineRequest("verify_sql", fields)


def _fact(
    claim: Claim = None,
    file: File = None,
    context: Annotated[
        str | None, typer.Option("--context", "-c", metavar="TEXT", help="text that must support the claim")
    ] = None,
    context_file: Annotated[str | None, typer.Option(metavar="FILE", help="file with that text")] = None,
) -> EngineRequest:
    _refuse_two_readers(claim, file, context, context_file)
    text = read_text(context, context_file, "the context")
    if text is None:
        fail("the context is missing: give it with --context TEXT or --context-file FILE")
    return EngineRequest("verify_fact", {"claim": require_text(claim, file, "the claim"), "context": text})


def _stats(
    claim: Claim,
    table: Annotated[str, typer.Argument(metavar="FILE|-", help="csv, tsv, json or parquet file, at most 10 MiB")],
    kind: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="format of the file (default: detected from its content)"),
    ] = None,
) -> EngineRequest:
    fields = {"query": require_text(claim, None, "the claim"), "format": kind}
    return EngineRequest("verify_stats", fields, _read_file(claim, table))


def _image(
    claim: Claim,
    image: Annotated[str, typer.Argument(metavar="FILE|-", help="image file, at most 10 MiB")],
) -> EngineRequest:
    return EngineRequest("verify_image", {"claim": require_text(claim, None, "the claim")}, _read_file(claim, image))


def _consensus(
    query: Query = None,
    file: File = None,
    mode: Annotated[
        str | None, typer.Option("--mode", "-m", metavar="NAME", help="single, high or maximum: how many must agree")
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="minimum confidence, 0 to 1 (default 0.8)")
    ] = None,
) -> EngineRequest:
    text = require_text(query, file, "the query")
    return EngineRequest("verify_consensus", {"query": text, "mode": mode, "min_confidence": min_confidence})


def _read_file(claim: str | None, source: str) -> bytes:
    _refuse_two_readers(claim, source)
    return read_bytes(source, MAX_FILE)


def _refuse_two_readers(*sources: str | None) -> None:
    if sources.count(STDIN) > 1:
        fail("standard input can be read only once: give a file for one of the two")


_LANGUAGES = {
    "py": "python",
    "js": "javascript",
    "mjs": "javascript",
    "cjs": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "sh": "bash",
    "bash": "bash",
    "sql": "sql",
}
COMMANDS: dict[str, tuple[str, Callable[..., int]]] = {
    name: (text, _build_command(build_request))
    for name, text, build_request in (
        (
            "verify",
            "Verify any claim. Its form determines the engine, or the first word names a pack: legal, tax, ...",
            _any,
        ),
        ("verify-math", "Verify a calculation or an identity. An expression without a claim is computed.", _math),
        (
            "verify-logic",
            "Verify a formula or an argument. Give a formula of the logic language, or --premise and --conclusion.",
            _logic,
        ),
        ("verify-code", "Verify that code is pure computation.", _code),
        ("verify-sql", "Verify that a query only reads. It may read only the tables of the schema.", _sql),
        ("verify-fact", "Verify that a text supports a claim.", _fact),
        ("verify-stats", "Verify a claim about a table of data.", _stats),
        ("verify-image", "Verify a claim about an image.", _image),
        ("verify-consensus", "Verify a claim by independent methods. They must agree.", _consensus),
    )
}
