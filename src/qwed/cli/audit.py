"""`qwed audit`: verify the log, take it elsewhere, show its head, erase what is kept about somebody."""

import argparse
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from qwed.cli.telling import add_data_dir, data_dir_of, shown, sorry

if TYPE_CHECKING:
    from qwed.cli.audit_verify import Asked, Log, Report
    from qwed.store.reader import Reader

WRONG = 1

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
in the data directory; otherwise the directory is opened, and no server may run on it."""


def add_to(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("audit", help="verify or export the audit log", description="The audit log.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    _add_verify(_verb(verbs, "verify", "check that nothing in the log was changed", _VERIFY, _verify))
    export = _verb(verbs, "export", "write the log as JSON lines", _EXPORT, _export)
    export.add_argument("--payloads", action="store_true", help="with the content that can still be read: keep it safe")
    export.add_argument("--output", type=Path, metavar="F", help="the file to write (default: standard output)")
    _verb(verbs, "head", "print the newest signed head", _HEAD, _head)
    erase = _verb(verbs, "erase", "destroy all content about one subject", _ERASE, _erase, organisation=False)
    erase.add_argument("--subject", required=True, metavar="S", help="who: `context.subject`, or the principal's id")
    erase.add_argument("--url", metavar="URL", help="the running server (QWED_BASE_URL)")
    erase.add_argument("--yes", action="store_true", help="do not ask first")


def _verb(
    verbs: Any, name: str, summary: str, text: str, run: Callable[..., int], *, organisation: bool = True
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=summary, description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_dir(parser)
    if organisation:
        parser.add_argument("--organisation", metavar="ID", help="whose log (default: all, or the only one)")
    parser.set_defaults(run=_safely(run))
    return parser


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--export", type=Path, metavar="F", help="verify an export instead; `-` is standard input")
    parser.add_argument("--head", type=Path, metavar="FILE", help="a saved head, or the file of a witness")
    parser.add_argument("--jwks", type=Path, metavar="FILE", help="the public keys you trust (default: the node's own)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--progress", action="store_true", help="tell how far it is, even where no terminal is")


def _safely(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command; 2 with one sentence where something cannot be read."""

    def safely(given: argparse.Namespace) -> int:
        # Imported here so that `qwed --help` answers at once.
        from qwed.store.reader import Unreadable

        try:
            return run(given)
        except Unreadable as error:
            return sorry(str(error))

    return safely


# Verify


def _verify(given: argparse.Namespace) -> int:
    from qwed.cli.audit_verify import Asked, heads_in, jwks_in, verify_directory, verify_export

    if given.export is not None and given.data_dir is not None:
        return sorry("give --data-dir or --export, one of the two")
    asked = Asked(
        given.organisation,
        None if given.head is None else heads_in(given.head),
        None if given.jwks is None else jwks_in(given.jwks),
        _tell_progress if given.progress or sys.stderr.isatty() else None,
    )
    if given.export is not None:
        report = verify_export(given.export, asked)
    else:
        report = verify_directory(data_dir_of(given.data_dir), asked)
    for line in _as_json(report) if given.json else _as_text(report, asked):
        print(line)
    return WRONG if report.wrong else 0


def _tell_progress(log_id: str, count: int) -> None:
    print(f"{shown(log_id)}: {count} entries read", file=sys.stderr)


def _as_text(report: "Report", asked: "Asked") -> Iterable[str]:
    for log in report.logs:
        for finding in log.findings:
            yield shown(f"{log.log_id}: {finding.where}: {finding.what}")
        if log.unlisted:
            yield shown(f"{log.log_id}: and {log.unlisted} more of the kind")
    yield from (shown(f"{finding.where}: {finding.what}") for finding in report.findings)
    yield from (shown(f"note: {note}") for note in report.notes)
    yield from (shown(_summary(log, asked)) for log in report.logs)
    yield f"{_many(report.wrong, 'thing')} wrong" if report.wrong else "nothing is wrong"


def _summary(log: "Log", asked: "Asked") -> str:
    content = ", ".join(f"{count} {state}" for state, count in sorted(log.contents.items()))
    heads = asked.heads_of(log.log_id)
    saved = 0 if heads is None else heads.count
    parts = [
        f"{log.log_id}: {_many(log.size, 'entry', 'entries')}, {_many(log.heads, 'head')}, root {log.root}",
        f"content: {content}" if content else "",
        f"compared with {_many(saved, 'saved head')}" if saved else "",
    ]
    return "; ".join(part for part in parts if part)


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def _as_json(report: "Report") -> Iterable[str]:
    logs = [
        {**log._asdict(), "findings": [finding._asdict() for finding in log.findings], "unlisted": log.unlisted}
        for log in report.logs
    ]
    findings = [finding._asdict() for finding in report.findings]
    yield json.dumps(
        {"valid": not report.wrong, "count": report.wrong, "logs": logs, "findings": findings, "notes": report.notes}
    )


# Export and head


def _export(given: argparse.Namespace) -> int:
    from qwed.cli.audit_export import Opened, export_lines, nothing
    from qwed.cli.audit_keys import master_in, published_in, subject_keys
    from qwed.ledger.vault import MASTER_FILE
    from qwed.store.reader import Unreadable, open_reader

    directory = data_dir_of(given.data_dir)
    published, master = published_in(directory), master_in(directory)
    if given.payloads and master is None:
        raise Unreadable(f"{directory / MASTER_FILE} is not there: without it no content can be read")
    with open_reader(directory) as reader:
        log_id = _one_log(reader, given.organisation)
        contents = Opened(subject_keys(reader, master)) if given.payloads and master is not None else nothing
        with _written(given.output, directory, private=given.payloads) as out:
            for line in export_lines(reader, log_id, published, contents):
                out.write(line + b"\n")
    unreadable = getattr(contents, "unreadable", 0)
    if unreadable:
        print(f"qwed: {_many(unreadable, 'content')} did not open: run `qwed audit verify`", file=sys.stderr)
    return WRONG if unreadable else 0


def _one_log(reader: "Reader", organisation: str | None) -> str:
    from qwed.store.reader import Unreadable

    known = list(dict.fromkeys([*reader.organisations(), *reader.logs()]))
    if organisation is None and len(known) == 1:
        return known[0]
    listed = ", ".join(known[:10]) or "none"
    if organisation is None:
        raise Unreadable(f"there are {len(known)} organisations: name one with --organisation, such as {listed}")
    if organisation not in known:
        raise Unreadable(f"there is no organisation `{organisation}`: known are {listed}")
    return organisation


def _written(output: Path | None, directory: Path, *, private: bool) -> BinaryIO:
    """The place to write to; a file with content in it is readable by its owner alone."""
    from qwed.store.reader import Unreadable

    if output is None:
        return os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    if output.resolve().parent == directory.resolve():
        raise Unreadable(f"{output} would lie among the files of the server: choose another --output")
    try:
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666)
        if private and stat.S_ISREG(os.fstat(handle).st_mode):
            os.fchmod(handle, 0o600)
    except OSError as error:
        raise Unreadable(f"{output} cannot be written: {error.strerror}") from None
    return os.fdopen(handle, "wb")


def _head(given: argparse.Namespace) -> int:
    import msgspec

    from qwed.ledger.sequencer import head_from
    from qwed.store.reader import Unreadable, open_reader

    with open_reader(data_dir_of(given.data_dir)) as reader:
        log_id = _one_log(reader, given.organisation)
        signature = reader.latest_head(log_id)
    if signature is None:
        raise Unreadable(f"the log of {log_id} has no head yet: it begins with the first decision or change")
    try:
        print(msgspec.json.encode(head_from(signature)).decode())
    except (msgspec.DecodeError, ValueError, IndexError):
        return sorry("the newest head is no head any more: run `qwed audit verify`")
    return 0


# Erase


def _erase(given: argparse.Namespace) -> int:
    from qwed.cli.audit_erase import erase_here, erase_there

    if not given.yes and not _confirmed(given.subject):
        return sorry("nothing was erased")
    url = given.url or os.environ.get("QWED_BASE_URL")
    directory = data_dir_of(given.data_dir)
    erased = erase_here(given.subject, directory) if url is None else erase_there(given.subject, url, directory)
    print("erased" if erased else "nothing is kept about this subject")
    return 0


def _confirmed(subject: str) -> bool:
    if not sys.stdin.isatty():
        print("qwed: this cannot be undone, and nobody is there to be asked: add --yes", file=sys.stderr)
        return False
    print(f"Everything kept about `{shown(subject)}` will be destroyed. Type yes to go on: ", end="", file=sys.stderr)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() == "yes"
