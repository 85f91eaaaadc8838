"""Whether a log is what it was: of a data directory, beside a running server or without one, or as it was exported."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from qwed.cli.asking import open_input
from qwed.cli.audit.export import export_lines
from qwed.cli.audit.heads import HeadsOfLog, Roots, SavedHeads
from qwed.cli.audit.keys import Published, SubjectKeys, master_in, published_in, subject_keys
from qwed.cli.audit.rows import Findings, RowCheck
from qwed.cli.audit.tables import TableCheck
from qwed.ledger import verifier
from qwed.ledger.vault import MASTER_FILE, Master
from qwed.ledger.verifier import MAX_LINE, Finding, Invalid, Keys, LogReport
from qwed.store.reader import KeptActivity, Reader, Unreadable, open_reader

Progress = Callable[[str, int], None]
"""Told which log is read, and how many entries were."""

_LARGEST_JWKS = 1 << 20


class Asked(NamedTuple):
    """What is to be verified, and against what."""

    organisation: str | None = None
    saved: SavedHeads | None = None
    keys: Keys | None = None
    progress: Progress | None = None

    def heads_of(self, log_id: str) -> HeadsOfLog | None:
        """The saved heads of one log."""
        return None if self.saved is None else self.saved.logs.get(log_id)


class Log(NamedTuple):
    """One log, and what is wrong with it."""

    log_id: str
    size: int
    root: str
    heads: int
    contents: dict[str, int]
    findings: list[Finding]
    unlisted: int = 0
    """Findings beyond those."""


class Report(NamedTuple):
    """All that was verified."""

    logs: list[Log]
    findings: list[Finding]
    """What is wrong with none of them alone."""
    notes: list[str]

    @property
    def wrong(self) -> int:
        """How many findings there are."""
        return len(self.findings) + sum(len(log.findings) + log.unlisted for log in self.logs)


def jwks_in(file: Path) -> Keys:
    """The public keys in a file; Unreadable where it is no JWKS."""
    try:
        with file.open("rb") as stream:
            return verifier.public_keys(msgspec.json.decode(stream.read(_LARGEST_JWKS)))
    except OSError as error:
        raise Unreadable(f"{file} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, Invalid, RecursionError) as error:
        raise Unreadable(f"{file} is no JWKS: {error}") from None


def heads_in(file: Path) -> SavedHeads:
    """The heads somebody saved; Unreadable where there are none."""
    try:
        saved = SavedHeads(file)
    except OSError as error:
        raise Unreadable(f"{file} cannot be read: {error.strerror}") from None
    if not saved.logs and not saved.unreadable:
        raise Unreadable(f"{file} holds no head: save the answer of GET /audit/head, or name the file of a witness")
    return saved


# A data directory


def verify_directory(directory: Path, asked: Asked, database_url: str = "") -> Report:
    """Every log of the directory, or of the database whose keys lie there, or one; and the tables beside it."""
    published, master = published_in(directory), master_in(directory)
    with open_reader(directory, database_url) as reader:
        report = verify_reader(reader, published, master, asked)
    notes = [] if master else [f"content was not checked: {directory / MASTER_FILE} is not there"]
    keys = _keys_of(published) if asked.keys is None else asked.keys
    return _with_heads(report._replace(notes=notes), asked, keys)


def verify_reader(reader: Reader, published: Published, master: Master | None, asked: Asked) -> Report:
    """Every log that is read, or one, and the tables beside it; without the master key its content is not opened."""
    keys = _keys_of(published) if asked.keys is None else asked.keys
    opening = None if master is None else subject_keys(reader, master)
    added: set[str] = set()
    log_ids = _log_ids(reader, asked.organisation)
    logs = [_verify_log(reader, log_id, published, keys, opening, asked, added) for log_id in log_ids]
    findings = [Finding(name, "it is not as this version of qwed makes it") for name in reader.altered()]
    findings += [] if asked.organisation else [*_organisations(reader, log_ids, added)]
    return Report(logs, findings, [])


def _keys_of(published: Published) -> Keys:
    try:
        return verifier.public_keys(published.jwks)
    except Invalid as error:
        raise Unreadable(f"the node's public keys cannot be used: {error}") from None


def _log_ids(reader: Reader, organisation: str | None) -> list[str]:
    known = list(dict.fromkeys([*reader.organisations(), *reader.logs()]))
    if organisation is not None and organisation not in known:
        raise Unreadable(f"there is no organisation `{organisation}`: known are {', '.join(known[:10]) or 'none'}")
    return known if organisation is None else [organisation]


def _verify_log(
    reader: Reader,
    log_id: str,
    published: Published,
    keys: Keys,
    opening: SubjectKeys | None,
    asked: Asked,
    added: set[str],
) -> Log:
    findings, roots = Findings(), Roots(asked.heads_of(log_id))
    rows, tables = RowCheck(reader, log_id, opening, findings), TableCheck(reader, log_id, findings)

    def each(row: KeptActivity) -> None:
        kept = rows.row(row)
        if kept is not None:
            tables.row(row.log_index, kept)
        roots.add(row.leaf)

    report = verifier.check_log(
        export_lines(reader, log_id, published, each=each), keys=keys, progress=_progress_of(asked, log_id)
    )
    tables.close()
    added |= tables.added
    return _log_of(report, [*report.findings, *roots.compared(asked.saved, keys)], findings, rows.contents)


def _progress_of(asked: Asked, log_id: str) -> Callable[[int], None] | None:
    progress = asked.progress
    return None if progress is None else lambda count: progress(log_id, count)


def _log_of(report: LogReport, proven: list[Finding], beside: Findings, contents: Counter[str]) -> Log:
    unlisted = beside.count - len(beside.listed)
    return Log(
        report.log_id, report.size, report.root, report.heads, dict(contents), [*proven, *beside.listed], unlisted
    )


def _organisations(reader: Reader, log_ids: list[str], added: set[str]) -> Iterator[Finding]:
    """The list of organisations against the logs; the first was there before there was a log to say so."""
    known = reader.organisations()
    for log_id in log_ids:
        if log_id not in known:
            yield Finding(f"log `{log_id}`", "it is there, and its organisation is not")
    for organisation_id in known[1:]:
        if organisation_id not in added:
            yield Finding(f"organisation `{organisation_id}`", "no entry of a log made it")
    for activity_id in reader.executions(None):
        yield Finding(f"execution of `{activity_id}`", "there is no such activity")


# An export


class _Export:
    """The lines of an export on their way to the verifier, and what is learnt of them on the way."""

    def __init__(self, stream: BinaryIO, asked: Asked) -> None:
        self._stream = stream
        self._asked = asked
        self.log_id = ""
        self.roots = Roots(None)
        self.keys: Keys = asked.keys or {}

    def __iter__(self) -> Iterator[bytes]:
        while line := self._stream.readline(MAX_LINE + 1):
            if self._asked.saved is not None:
                self._look(line)
            yield line

    def _look(self, line: bytes) -> None:
        try:
            item = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return
        if isinstance(item, dict):
            self._learn(item)

    def _learn(self, item: dict[str, Any]) -> None:
        entry, log_id = item.get("entry"), item.get("log_id")
        if isinstance(entry, dict) and isinstance(entry.get("leaf"), str):
            self.roots.add(entry["leaf"])
        elif isinstance(log_id, str) and not self.log_id:
            self.log_id, self.roots = log_id, Roots(self._asked.heads_of(log_id))
        elif "keys" in item and self._asked.keys is None:
            try:
                self.keys = verifier.public_keys(item)
            except Invalid:
                self.keys = {}


def verify_export(file: Path, asked: Asked) -> Report:
    """One log, as `qwed audit export` wrote it; `-` is the standard input."""
    with ExitStack() as opened:
        try:
            stream = opened.enter_context(open_input("-") if str(file) == "-" else file.open("rb"))
            export = _Export(stream, asked)
            report = verifier.check_log(export, keys=asked.keys, progress=_progress_of(asked, "the export"))
        except OSError as error:
            raise Unreadable(f"{file} cannot be read: {error.strerror}") from None
    if not report.log_id and not report.size:
        raise Unreadable(f"{file} is no export: write one with `qwed audit export`")
    if asked.organisation not in (None, report.log_id):
        raise Unreadable(f"{file} is the log of `{report.log_id}`, not of `{asked.organisation}`")
    compared = export.roots.compared(asked.saved, export.keys)
    log = _log_of(report, [*report.findings, *compared], Findings(), Counter())
    return _with_heads(Report([log], [], list(report.notes)), asked, {})


# Saved heads


def _with_heads(report: Report, asked: Asked, ours: Keys) -> Report:
    """The report with what the saved heads say of logs that were not looked at, or are not there."""
    if asked.saved is None:
        return report
    seen = {log.log_id for log in report.logs}
    findings, others = list(asked.saved.unreadable), 0
    for log_id, saved in asked.saved.logs.items():
        if log_id in seen:
            continue
        if asked.organisation is None and saved.all_signed(ours):
            findings.append(Finding(f"log `{log_id}`", f"{asked.saved.file} has a head of it, and it is gone"))
        else:
            others += saved.count
    if not seen & asked.saved.logs.keys():
        findings.append(Finding(str(asked.saved.file), "none of its heads is of a log that was verified"))
    notes = [f"{others} heads of other logs in {asked.saved.file} were not compared"] if others else []
    return report._replace(findings=[*report.findings, *findings], notes=[*report.notes, *notes])
