"""The commands, one for each engine: their options, and the question they come to."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from qwed.cli.asking import MOST_FILE, STDIN, Local, Url, Where, read_bytes, read_text, require_text
from qwed.cli.options import AsJson, DataDir
from qwed.cli.printing import sorry
from qwed.cli.verifying.answering import PACKS, How, Question, answer
from qwed.cli.verifying.packs import question_of
from qwed.words.near import near, perhaps

_QUERY = "QUERY|-"
Query = Annotated[str | None, typer.Argument(metavar=_QUERY, help="the text itself, or `-` for standard input")]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[OPERATION [NAME=VALUE]...]",
        help="after the name of a pack (legal, finance, ucp, tax): the check, its values, and a text; @FILE reads one",
    ),
]
Claim = Annotated[str | None, typer.Argument(metavar="CLAIM|-", help="the claim, or `-` for standard input")]
File = Annotated[str | None, typer.Option("--file", "-f", metavar="FILE", help="read the text from this file")]
Seconds = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", help="how long the engine may take, 1 to 60 (30)")
]
Attest = Annotated[bool, typer.Option("--attest", help="ask for a signed statement of the answer")]


def _common(
    seconds: Seconds = None,
    attest: Attest = False,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
    local: Local = False,
) -> None:
    """The options that every one of the commands takes."""


def _command(question: Callable[..., Question]) -> Callable[..., int]:
    """The command that asks the question; its own options first, then those of every command."""

    def run(
        seconds: float | None, attest: bool, as_json: bool, url: str | None, data_dir: Any, local: bool, **own: Any
    ) -> int:
        return answer(question(**own), How(seconds, attest, as_json), Where(url, data_dir, local))

    own = inspect.signature(question).parameters.values()
    shared = inspect.signature(_common).parameters.values()
    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]  # what typer reads
    return run


def _any(query: Query = None, words: Words = None, file: File = None) -> Question:
    if query in PACKS:
        return question_of(query, words or (), file)
    if words and near(query, PACKS):
        sorry(f"unknown pack `{query}`: {perhaps(query, PACKS)}known are {', '.join(PACKS)}")
    if words:
        sorry(f"`{words[0][:60]}` is one word too many: put the query in quotes, or name a pack: {', '.join(PACKS)}")
    return Question("verify", {"query": require_text(query, file, "the query")})


def _math(
    expression: Query = None,
    file: File = None,
    operation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="derivative, integral, simplify, solve or evaluate, with --claimed-result"),
    ] = None,
    claimed_result: Annotated[str | None, typer.Option(metavar="TEXT", help="what the operation should give")] = None,
    tolerance: Annotated[str | None, typer.Option(metavar="NUMBER", help="how far the two sides may differ")] = None,
    assume: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="what holds of the variables, such as `x > 0`; repeatable")
    ] = None,
    unit: Annotated[str | None, typer.Option(metavar="UNIT", help="the unit that the result is in")] = None,
) -> Question:
    fields = {
        "expression": require_text(expression, file, "the expression"),
        "operation": operation,
        "claimed_result": claimed_result,
        "tolerance": tolerance,
        "assumptions": assume or None,
        "unit": unit,
    }
    return Question("verify_math", fields)


def _logic(
    query: Query = None,
    file: File = None,
    premise: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="what is taken for granted; repeatable, with --conclusion")
    ] = None,
    conclusion: Annotated[str | None, typer.Option(metavar="TEXT", help="what should follow from it")] = None,
) -> Question:
    if conclusion is None and not premise:
        return Question("verify_logic", {"query": require_text(query, file, "the formula")})
    if query is not None or file is not None:
        sorry("give a formula, or --premise and --conclusion, not both")
    if conclusion is None:
        sorry("--conclusion is missing: what should follow from the premises?")
    return Question("verify_logic", {"premises": premise or [], "conclusion": conclusion})


def _code(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE|-", help="the code itself, or `-` for standard input")
    ] = None,
    file: File = None,
    language: Annotated[
        str | None,
        typer.Option("--language", "-l", metavar="NAME", help="python, javascript, typescript, bash or sql"),
    ] = None,
) -> Question:
    named = language or _LANGUAGES.get((file or "").rpartition(".")[2].lower(), "python")
    return Question("verify_code", {"code": require_text(code, file, "the code"), "language": named})


def _sql(
    query: Query = None,
    file: File = None,
    schema: Annotated[str | None, typer.Option(metavar="FILE", help="a file with the CREATE TABLE statements")] = None,
    schema_ddl: Annotated[str | None, typer.Option(metavar="TEXT", help="the CREATE TABLE statements")] = None,
    dialect: Annotated[
        str, typer.Option("--dialect", "-d", metavar="NAME", help="sqlite (the default), postgres, mysql, tsql, ...")
    ] = "sqlite",
    allow_table: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="a table that may be touched; repeatable, then no other")
    ] = None,
    allow_mutation: Annotated[bool, typer.Option("--allow-mutation", help="accept queries that write")] = False,
) -> Question:
    fields = {
        "query": require_text(query, file, "the query"),
        "schema_ddl": read_text(schema_ddl, schema, "the schema"),
        "dialect": dialect,
        "allowed_tables": allow_table or None,
        "allow_mutation": allow_mutation or None,
    }
    return Question("verify_sql", fields)


def _fact(
    claim: Claim = None,
    file: File = None,
    context: Annotated[
        str | None, typer.Option("--context", "-c", metavar="TEXT", help="the text that the claim must be found in")
    ] = None,
    context_file: Annotated[str | None, typer.Option(metavar="FILE", help="a file with that text")] = None,
) -> Question:
    _refuse_two_readers(claim, file, context, context_file)
    text = read_text(context, context_file, "the context")
    if text is None:
        sorry("the context is missing: give it with --context TEXT or --context-file FILE")
    return Question("verify_fact", {"claim": require_text(claim, file, "the claim"), "context": text})


def _stats(
    claim: Claim,
    table: Annotated[str, typer.Argument(metavar="FILE|-", help="csv, tsv, json or parquet, at most 10 MiB")],
    kind: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="what the file is; else its content says so")
    ] = None,
) -> Question:
    fields = {"query": require_text(claim, None, "the claim"), "format": kind}
    return Question("verify_stats", fields, _file(claim, table))


def _image(
    claim: Claim,
    image: Annotated[str, typer.Argument(metavar="FILE|-", help="the image, at most 10 MiB")],
) -> Question:
    return Question("verify_image", {"claim": require_text(claim, None, "the claim")}, _file(claim, image))


def _consensus(
    query: Query = None,
    file: File = None,
    mode: Annotated[
        str | None, typer.Option("--mode", "-m", metavar="NAME", help="single, high or maximum: how many must agree")
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="how sure they must be, 0 to 1 (0.8)")
    ] = None,
) -> Question:
    text = require_text(query, file, "the query")
    return Question("verify_consensus", {"query": text, "mode": mode, "min_confidence": min_confidence})


def _file(claim: str | None, source: str) -> bytes:
    _refuse_two_readers(claim, source)
    return read_bytes(source, MOST_FILE)


def _refuse_two_readers(*sources: str | None) -> None:
    if sources.count(STDIN) > 1:
        sorry("standard input can be read once: name a file for one of the two")


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
    name: (text, _command(question))
    for name, text, question in (
        (
            "verify",
            "Verify any claim. Its shape says which engine reads it, or the first word names a pack: legal, tax, ...",
            _any,
        ),
        ("verify-math", "Verify a calculation or an identity. Without a claim, the expression is computed.", _math),
        (
            "verify-logic",
            "Verify a formula or an argument. A formula of the logic language, or --premise and --conclusion.",
            _logic,
        ),
        ("verify-code", "Verify that code is pure computation.", _code),
        ("verify-sql", "Verify that a query only reads. And nothing it should not, within the schema.", _sql),
        ("verify-fact", "Verify that a text says what a claim says.", _fact),
        ("verify-stats", "Verify a claim about a table of data.", _stats),
        ("verify-image", "Verify a claim about an image.", _image),
        ("verify-consensus", "Verify by independent methods. They must agree.", _consensus),
    )
}
