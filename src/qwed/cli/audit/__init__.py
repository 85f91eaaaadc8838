"""`qwed audit`: verify, export and show the head of the log; erase a subject's content."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from qwed.cli.backend import Target, is_local
from qwed.cli.options import AsJson, Database, DataDir, Organisation, data_dir_of, database_of, group
from qwed.cli.output import EXIT_FAILED, echo, fail, print_json, prompt

_Params = ParamSpec("_Params")

_VERIFY = """Verify the audit log: no entry was changed, removed, moved or added; the node signed every
head; every table agrees with the log; all content is as it was written. The command only reads,
and a server may be running.

With a head that was saved earlier (the response of GET /audit/head, or the file of a witness) it
also detects a log that was rewritten, truncated or replaced as a whole.

Exit code: 0 nothing is wrong, 1 something is wrong, 2 the log could not be read."""
_EXPORT = """Export one organisation's log as JSON lines. Anyone can verify the export with `qwed audit
verify --export F`, or with the single file verifier.py. Without --payloads it holds ids and
hashes, but no content."""
_HEAD = """Print the newest signed head of a log, in the form of GET /audit/head. Store it elsewhere, and
compare the log with it by `qwed audit verify --head`."""
_ERASE = """Destroy the key that encrypts all content about one subject: the content can never be read
again, here or in any copy of the database. The log itself stays intact. This cannot be undone.

If --url or QWED_BASE_URL names a server, the server does it, with QWED_API_KEY or the owner's key
in the data directory. Otherwise the command opens the data directory, on which no server may run,
or the PostgreSQL database, on which servers may run."""


def add_to(app: typer.Typer) -> None:
    """Add the command and its verbs."""
    verbs = group("Verify, export or erase from the audit log.")
    for name, summary, text, run in (
        ("verify", "Verify that the log was not changed.", _VERIFY, _exit_on_read_error(_verify)),
        ("export", "Export the log as JSON lines.", _EXPORT, _exit_on_read_error(_export)),
        ("head", "Print the newest signed head.", _HEAD, _exit_on_read_error(_head)),
        ("erase", "Erase all content about one subject.", _ERASE, _exit_on_read_error(_erase)),
    ):
        verbs.command(name, short_help=summary, help=text)(run)
    app.add_typer(verbs, name="audit", short_help="Verify, export or erase from the audit log.")


def _exit_on_read_error(run: Callable[_Params, int]) -> Callable[_Params, int]:
    """Return the command wrapped so that a read error exits with one line."""

    @functools.wraps(run)
    def wrapped(*args: _Params.args, **kwargs: _Params.kwargs) -> int:
        # Imported here to keep `qwed --help` fast.
        from qwed.store.snapshot_reader import DatabaseReadError

        try:
            return run(*args, **kwargs)
        except DatabaseReadError as error:
            fail(error)

    return wrapped


def _verify(
    data_dir: DataDir = None,
    organisation: Organisation = None,
    export: Annotated[
        Path | None, typer.Option(metavar="F", help="verify this export instead; `-` reads standard input")
    ] = None,
    head: Annotated[Path | None, typer.Option(metavar="FILE", help="saved head, or the file of a witness")] = None,
    jwks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="public keys you trust (default: the node's own)")
    ] = None,
    as_json: AsJson = False,
    progress: Annotated[bool, typer.Option("--progress", help="report progress even without a terminal")] = False,
    database: Database = None,
) -> int:
    from qwed.cli.audit.render import report_json as json_of
    from qwed.cli.audit.render import report_lines
    from qwed.cli.audit.verify import VerifyRequest, read_jwks, read_saved_heads, verify_directory, verify_export

    if export is not None and (data_dir or database) is not None:
        fail("give either --data-dir or --export, not both")
    request = VerifyRequest(
        organisation,
        None if head is None else read_saved_heads(head),
        None if jwks is None else read_jwks(jwks),
        _print_progress if progress or sys.stderr.isatty() else None,
    )
    if export is None:
        report = verify_directory(data_dir_of(data_dir), request, database_of(database))
    else:
        report = verify_export(export, request)
    if as_json:
        print_json(json_of(report))
    else:
        for line in report_lines(report, request):
            echo(line)
    return EXIT_FAILED if report.wrong else 0


def _print_progress(log_id: str, count: int) -> None:
    echo(f"{log_id}: {count} entries read", err=True)


def _export(
    data_dir: DataDir = None,
    organisation: Organisation = None,
    payloads: Annotated[
        bool, typer.Option("--payloads", help="include the content that can still be decrypted; protect the file")
    ] = False,
    output: Annotated[Path | None, typer.Option(metavar="F", help="output file (default: standard output)")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print a JSON summary of what was written; needs --output")
    ] = False,
    database: Database = None,
) -> int:
    from qwed.cli.audit.write_export import write_export

    if as_json and output is None:
        fail("--json needs --output: standard output already holds the log")
    summary = write_export(
        data_dir_of(data_dir), organisation, output, payloads=payloads, database_url=database_of(database)
    )
    if summary.unreadable:
        contents = "content" if summary.unreadable == 1 else "contents"
        echo(f"qwed: {summary.unreadable} {contents} could not be decrypted: run `qwed audit verify`", err=True)
    if as_json:
        print_json({"output": str(output), **summary._asdict()})
    return EXIT_FAILED if summary.unreadable else 0


def _head(
    data_dir: DataDir = None,
    organisation: Organisation = None,
    _as_json: Annotated[
        bool, typer.Option("--json", help="accepted for consistency: a head is always printed as JSON")
    ] = False,
    database: Database = None,
) -> int:
    import msgspec

    from qwed.cli.audit.write_export import select_log
    from qwed.ledger.sequencer import head_from
    from qwed.store.snapshot_reader import DatabaseReadError, open_reader

    with open_reader(data_dir_of(data_dir), database_of(database)) as reader:
        log_id = select_log(reader, organisation)
        signature = reader.latest_head(log_id)
    if signature is None:
        raise DatabaseReadError(f"the log of {log_id} has no head yet: the first decision or change creates one")
    try:
        print(msgspec.json.encode(head_from(signature)).decode())
    except (msgspec.DecodeError, ValueError, IndexError):
        fail("the newest head is damaged: run `qwed audit verify`")
    return 0


def _erase(
    subject: Annotated[str, typer.Option(metavar="S", help="subject: `context.subject`, or the principal id")],
    data_dir: DataDir = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="running server (QWED_BASE_URL)")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")] = False,
    as_json: AsJson = False,
    database: Database = None,
) -> int:
    from qwed.cli.audit.erase import erase_in_directory, erase_on_server

    if not yes and not _confirm_erasure(subject):
        fail("nothing was erased")
    target = Target(url, data_dir)
    if is_local(target):
        erased = erase_in_directory(subject, data_dir_of(data_dir), database_of(database))
    else:
        erased = erase_on_server(subject, target)
    if as_json:
        print_json({"erased": erased})
    else:
        echo("erased" if erased else "nothing is stored about this subject")
    return 0


def _confirm_erasure(subject: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        echo("qwed: erasure cannot be undone, and confirmation needs a terminal: add --yes", err=True)
        return False
    return prompt(f"All content about `{subject}` will be destroyed. Type yes to continue: ") == "yes"
