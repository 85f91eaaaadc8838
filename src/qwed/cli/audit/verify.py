"""Verification of the logs in a data directory, a database or an export."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from qwed.cli.audit.export import export_lines
from qwed.cli.audit.heads import LogHeads, RootTracker, SavedHeads
from qwed.cli.audit.keys import (
    PublishedKeys,
    SubjectKeyLookup,
    read_master_key,
    read_published_keys,
    subject_key_lookup,
)
from qwed.cli.audit.row_check import FindingCollector, RowCheck
from qwed.cli.audit.table_check import TableCheck
from qwed.cli.backend import open_input
from qwed.ledger import verifier
from qwed.ledger.subject_encryption import MASTER_FILE, MasterKey
from qwed.ledger.verifier import MAX_LINE, InvalidEvidenceError, Keys, LogFinding, LogReport
from qwed.store.snapshot_reader import ActivityRow, DatabaseReadError, SnapshotReader, open_reader

Progress = Callable[[str, int], None]
"""Callback with the log id and the number of entries read."""

_MAX_JWKS = 1 << 20


class VerifyRequest(NamedTuple):
    """Logs to verify, and the saved heads and keys to verify them against."""

    organisation: str | None = None
    saved: SavedHeads | None = None
    keys: Keys | None = None
    progress: Progress | None = None

    def heads_of(self, log_id: str) -> LogHeads | None:
        """Return the saved heads of one log, or None."""
        return None if self.saved is None else self.saved.logs.get(log_id)


class VerifiedLog(NamedTuple):
    """Result for one log."""

    log_id: str
    size: int
    root: str
    heads: int
    contents: dict[str, int]
    findings: list[LogFinding]
    unlisted: int = 0
    """Number of findings that are not listed."""


class AuditReport(NamedTuple):
    """Result of a verification."""

    logs: list[VerifiedLog]
    findings: list[LogFinding]
    """Findings that do not belong to a single log."""
    notes: list[str]

    @property
    def wrong(self) -> int:
        """Total number of findings."""
        return len(self.findings) + sum(len(log.findings) + log.unlisted for log in self.logs)


def read_jwks(file: Path) -> Keys:
    """Read public keys from a file; raise DatabaseReadError if it is not a JWKS."""
    try:
        with file.open("rb") as stream:
            return verifier.public_keys(msgspec.json.decode(stream.read(_MAX_JWKS)))
    except OSError as error:
        raise DatabaseReadError(f"{file} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, InvalidEvidenceError, RecursionError) as error:
        raise DatabaseReadError(f"{file} is not a JWKS: {error}") from None


def read_saved_heads(file: Path) -> SavedHeads:
    """Read saved heads from a file; raise DatabaseReadError if it has none."""
    try:
        saved = SavedHeads(file)
    except OSError as error:
        raise DatabaseReadError(f"{file} cannot be read: {error.strerror}") from None
    if not saved.logs and not saved.unreadable:
        raise DatabaseReadError(
            f"{file} holds no head: save the response of GET /audit/head, or give the file of a witness"
        )
    return saved


# A data directory


def verify_directory(directory: Path, request: VerifyRequest, database_url: str = "") -> AuditReport:
    """Verify all logs, or one, of a data directory or of the database it has the keys of."""
    published, master = read_published_keys(directory), read_master_key(directory)
    with open_reader(directory, database_url) as reader:
        report = verify_reader(reader, published, master, request)
    notes = [] if master else [f"content was not checked: {directory / MASTER_FILE} does not exist"]
    keys = _keys_of(published) if request.keys is None else request.keys
    return _add_saved_head_findings(report._replace(notes=notes), request, keys)


def verify_reader(
    reader: SnapshotReader, published: PublishedKeys, master: MasterKey | None, request: VerifyRequest
) -> AuditReport:
    """Verify all logs, or one, of an open database and its tables; content is only decrypted with the master key."""
    keys = _keys_of(published) if request.keys is None else request.keys
    key_lookup = None if master is None else subject_key_lookup(reader, master)
    added: set[str] = set()
    log_ids = _log_ids(reader, request.organisation)
    logs = [_verify_log(reader, log_id, published, keys, key_lookup, request, added) for log_id in log_ids]
    findings = [
        LogFinding(name, "it differs from the schema of this version of qwed") for name in reader.schema_drift()
    ]
    findings += [] if request.organisation else [*_check_organisations(reader, log_ids, added)]
    return AuditReport(logs, findings, [])


def _keys_of(published: PublishedKeys) -> Keys:
    try:
        return verifier.public_keys(published.jwks)
    except InvalidEvidenceError as error:
        raise DatabaseReadError(f"the node's public keys cannot be used: {error}") from None


def _log_ids(reader: SnapshotReader, organisation: str | None) -> list[str]:
    log_ids = list(dict.fromkeys([*reader.organisations(), *reader.logs()]))
    if organisation is not None and organisation not in log_ids:
        raise DatabaseReadError(
            f"there is no organisation `{organisation}`: the organisations are {', '.join(log_ids[:10]) or 'none'}"
        )
    return log_ids if organisation is None else [organisation]


def _verify_log(
    reader: SnapshotReader,
    log_id: str,
    published: PublishedKeys,
    keys: Keys,
    key_lookup: SubjectKeyLookup | None,
    request: VerifyRequest,
    added: set[str],
) -> VerifiedLog:
    findings, roots = FindingCollector(), RootTracker(request.heads_of(log_id))
    rows, tables = RowCheck(reader, log_id, key_lookup, findings), TableCheck(reader, log_id, findings)

    def on_row(row: ActivityRow) -> None:
        leaf = rows.check_row(row)
        if leaf is not None:
            tables.check_row(row.log_index, leaf)
        roots.add(row.leaf)

    report = verifier.check_log(
        export_lines(reader, log_id, published, on_row=on_row), keys=keys, progress=_progress_callback(request, log_id)
    )
    tables.close()
    added |= tables.added
    return _build_log(report, [*report.findings, *roots.compare(request.saved, keys)], findings, rows.contents)


def _progress_callback(request: VerifyRequest, log_id: str) -> Callable[[int], None] | None:
    progress = request.progress
    return None if progress is None else lambda count: progress(log_id, count)


def _build_log(
    report: LogReport, log_findings: list[LogFinding], table_findings: FindingCollector, contents: Counter[str]
) -> VerifiedLog:
    unlisted = table_findings.count - len(table_findings.listed)
    return VerifiedLog(
        report.log_id,
        report.size,
        report.root,
        report.heads,
        dict(contents),
        [*log_findings, *table_findings.listed],
        unlisted,
    )


def _check_organisations(reader: SnapshotReader, log_ids: list[str], added: set[str]) -> Iterator[LogFinding]:
    """Yield differences between the list of organisations and the logs; the first organisation precedes its log."""
    organisations = reader.organisations()
    for log_id in log_ids:
        if log_id not in organisations:
            yield LogFinding(f"log `{log_id}`", "its organisation is missing")
    for organisation_id in organisations[1:]:
        if organisation_id not in added:
            yield LogFinding(f"organisation `{organisation_id}`", "no entry of a log created it")
    for activity_id in reader.executions(None):
        yield LogFinding(f"execution of `{activity_id}`", "there is no such activity")


# An export


class _ExportReader:
    """Lines of an export for the verifier; collects the log id, roots and keys on the way."""

    def __init__(self, stream: BinaryIO, request: VerifyRequest) -> None:
        self._stream = stream
        self._request = request
        self.log_id = ""
        self.roots = RootTracker(None)
        self.keys: Keys = request.keys or {}

    def __iter__(self) -> Iterator[bytes]:
        while line := self._stream.readline(MAX_LINE + 1):
            if self._request.saved is not None:
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
            self.log_id, self.roots = log_id, RootTracker(self._request.heads_of(log_id))
        elif "keys" in item and self._request.keys is None:
            try:
                self.keys = verifier.public_keys(item)
            except InvalidEvidenceError:
                self.keys = {}


def verify_export(file: Path, request: VerifyRequest) -> AuditReport:
    """Verify one log that `qwed audit export` wrote; `-` reads standard input."""
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(open_input("-") if str(file) == "-" else file.open("rb"))
            export = _ExportReader(stream, request)
            report = verifier.check_log(export, keys=request.keys, progress=_progress_callback(request, "the export"))
        except OSError as error:
            raise DatabaseReadError(f"{file} cannot be read: {error.strerror}") from None
    if not report.log_id and not report.size:
        raise DatabaseReadError(f"{file} is not an export: create one with `qwed audit export`")
    if request.organisation not in (None, report.log_id):
        raise DatabaseReadError(f"{file} is the log of `{report.log_id}`, not of `{request.organisation}`")
    compared = export.roots.compare(request.saved, export.keys)
    log = _build_log(report, [*report.findings, *compared], FindingCollector(), Counter())
    return _add_saved_head_findings(AuditReport([log], [], list(report.notes)), request, {})


# Saved heads


def _add_saved_head_findings(report: AuditReport, request: VerifyRequest, keys: Keys) -> AuditReport:
    """Return the report with findings about saved heads of logs that were not verified or are missing."""
    if request.saved is None:
        return report
    seen = {log.log_id for log in report.logs}
    findings, others = list(request.saved.unreadable), 0
    for log_id, saved in request.saved.logs.items():
        if log_id in seen:
            continue
        if request.organisation is None and saved.all_signed(keys):
            findings.append(
                LogFinding(f"log `{log_id}`", f"{request.saved.file} has a head of it, but the log is missing")
            )
        else:
            others += saved.count
    if not seen & request.saved.logs.keys():
        findings.append(LogFinding(str(request.saved.file), "none of its heads belongs to a verified log"))
    notes = [f"{others} heads of other logs in {request.saved.file} were not compared"] if others else []
    return report._replace(findings=[*report.findings, *findings], notes=[*report.notes, *notes])
