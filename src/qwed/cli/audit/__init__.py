"""`qwed audit`: verify the log, take it elsewhere, show its head, erase what is kept about somebody."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from qwed.cli.asking import Where, is_local
from qwed.cli.options import AsJson, Database, DataDir, Organisation, data_dir_of, database_of, group
from qwed.cli.printing import WRONG, answer_to, print_json, say, sorry

_Given = ParamSpec("_Given")

_VERIFY = """Check that the audit log is what it was: no entry changed, removed, moved or added; every
head signed by the node; every table borne out by the log; all content as it was written. It
only reads, and a server may be running meanwhile.

With a head that was saved earlier (the answer of GET /audit/head, or the file of a witness) it
also finds a log that was rewritten, cut off or put back as a whole.

Exit code: 0 nothing is wrong, 1 something is, 2 it could not be read."""
_EXPORT = """Write one organisation's log as JSON lines. Anybody can verify them with `qwed audit verify
--export F`, or with the single file verifier.py alone. Without --payloads they hold ids and
hashes, and no content."""
_HEAD = """Print the newest signed head of a log, as GET /audit/head answers it. Keep it somewhere else:
it is what `qwed audit verify --head` compares with."""
_ERASE = """Destroy the key under which everything about one subject is sealed: the content can never be
read again, here or in any copy of the database. The log itself stays whole. This cannot be
undone.

Where --url or QWED_BASE_URL names a server, that is asked, with QWED_API_KEY or the owner's key
in the data directory; otherwise the directory is opened, and no server may run on it, or the
database in PostgreSQL, beside the servers that run on that."""


def add_to(app: typer.Typer) -> None:
    """Add the command and its verbs."""
    verbs = group("The audit log.")
    for name, summary, text, run in (
        ("verify", "Check that nothing in the log was changed.", _VERIFY, _safely(_verify)),
        ("export", "Write the log as JSON lines.", _EXPORT, _safely(_export)),
        ("head", "Print the newest signed head.", _HEAD, _safely(_head)),
        ("erase", "Destroy all content about one subject.", _ERASE, _safely(_erase)),
    ):
        verbs.command(name, short_help=summary, help=text)(run)
    app.add_typer(verbs, name="audit", short_help="Verify or export the audit log.")


def _safely(run: Callable[_Given, int]) -> Callable[_Given, int]:
    """The command; 2 with one sentence where something cannot be read."""

    @functools.wraps(run)
    def safely(*args: _Given.args, **kwargs: _Given.kwargs) -> int:
        # Imported here so that `qwed --help` answers at once.
        from qwed.store.reader import Unreadable

        try:
            return run(*args, **kwargs)
        except Unreadable as error:
            sorry(error)

    return safely


def _verify(
    data_dir: DataDir = None,
    organisation: Organisation = None,
    export: Annotated[
        Path | None, typer.Option(metavar="F", help="verify an export instead; `-` is standard input")
    ] = None,
    head: Annotated[Path | None, typer.Option(metavar="FILE", help="a saved head, or the file of a witness")] = None,
    jwks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="the public keys you trust (default: the node's own)")
    ] = None,
    as_json: AsJson = False,
    progress: Annotated[bool, typer.Option("--progress", help="tell how far it is, even where no terminal is")] = False,
    database: Database = None,
) -> int:
    from qwed.cli.audit.telling import as_json as json_of
    from qwed.cli.audit.telling import as_text
    from qwed.cli.audit.verify import Asked, heads_in, jwks_in, verify_directory, verify_export

    if export is not None and (data_dir or database) is not None:
        sorry("give --data-dir or --export, one of the two")
    asked = Asked(
        organisation,
        None if head is None else heads_in(head),
        None if jwks is None else jwks_in(jwks),
        _tell_progress if progress or sys.stderr.isatty() else None,
    )
    if export is None:
        report = verify_directory(data_dir_of(data_dir), asked, database_of(database))
    else:
        report = verify_export(export, asked)
    if as_json:
        print_json(json_of(report))
    else:
        for line in as_text(report, asked):
            say(line)
    return WRONG if report.wrong else 0


def _tell_progress(log_id: str, count: int) -> None:
    say(f"{log_id}: {count} entries read", err=True)


def _export(
    data_dir: DataDir = None,
    organisation: Organisation = None,
    payloads: Annotated[
        bool, typer.Option("--payloads", help="with the content that can still be read: keep it safe")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="F", help="the file to write (default: standard output)")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print what was written where, as one JSON value; needs --output")
    ] = False,
    database: Database = None,
) -> int:
    from qwed.cli.audit.writing import write_export

    if as_json and output is None:
        sorry("standard output already holds the log as JSON lines: --json needs --output")
    done = write_export(
        data_dir_of(data_dir), organisation, output, payloads=payloads, database_url=database_of(database)
    )
    if done.unreadable:
        contents = "content" if done.unreadable == 1 else "contents"
        say(f"qwed: {done.unreadable} {contents} did not open: run `qwed audit verify`", err=True)
    if as_json:
        print_json({"output": str(output), **done._asdict()})
    return WRONG if done.unreadable else 0


def _head(
    data_dir: DataDir = None,
    organisation: Organisation = None,
    _as_json: Annotated[bool, typer.Option("--json", help="a head is printed as JSON with and without it")] = False,
    database: Database = None,
) -> int:
    import msgspec

    from qwed.cli.audit.writing import one_log
    from qwed.ledger.sequencer import head_from
    from qwed.store.reader import Unreadable, open_reader

    with open_reader(data_dir_of(data_dir), database_of(database)) as reader:
        log_id = one_log(reader, organisation)
        signature = reader.latest_head(log_id)
    if signature is None:
        raise Unreadable(f"the log of {log_id} has no head yet: it begins with the first decision or change")
    try:
        print(msgspec.json.encode(head_from(signature)).decode())
    except (msgspec.DecodeError, ValueError, IndexError):
        sorry("the newest head is no head any more: run `qwed audit verify`")
    return 0


def _erase(
    subject: Annotated[str, typer.Option(metavar="S", help="who: `context.subject`, or the principal's id")],
    data_dir: DataDir = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="the running server (QWED_BASE_URL)")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask first")] = False,
    as_json: AsJson = False,
    database: Database = None,
) -> int:
    from qwed.cli.audit.erase import erase_here, erase_there

    if not yes and not _confirmed(subject):
        sorry("nothing was erased")
    where = Where(url, data_dir)
    if is_local(where):
        erased = erase_here(subject, data_dir_of(data_dir), database_of(database))
    else:
        erased = erase_there(subject, where)
    if as_json:
        print_json({"erased": erased})
    else:
        say("erased" if erased else "nothing is kept about this subject")
    return 0


def _confirmed(subject: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        say("qwed: this cannot be undone, and nobody is there to be asked: add --yes", err=True)
        return False
    return answer_to(f"Everything kept about `{subject}` will be destroyed. Type yes to go on: ") == "yes"
