"""Writing of an export to a file or standard output."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from qwed.cli.audit.export import DecryptedContent, export_lines, no_content
from qwed.cli.audit.keys import read_master_key, read_published_keys, subject_key_lookup
from qwed.ledger.subject_encryption import MASTER_FILE
from qwed.model.private_files import atomic_file
from qwed.store.snapshot_reader import DatabaseReadError, SnapshotReader, open_reader


class ExportSummary(NamedTuple):
    """Summary of a written export."""

    organisation: str
    lines: int
    unreadable: int
    """Number of contents that could not be decrypted."""


def write_export(
    directory: Path, organisation: str | None, output: Path | None, *, payloads: bool, database_url: str = ""
) -> ExportSummary:
    """Write one log to a file, or to standard output."""
    published, master = read_published_keys(directory), read_master_key(directory)
    if payloads and master is None:
        raise DatabaseReadError(f"{directory / MASTER_FILE} does not exist: content cannot be decrypted without it")
    with open_reader(directory, database_url) as reader:
        log_id = select_log(reader, organisation)
        contents = (
            DecryptedContent(subject_key_lookup(reader, master)) if payloads and master is not None else no_content
        )
        count = 0
        with _open_output(output, directory, private=payloads) as out:
            for line in export_lines(reader, log_id, published, contents):
                out.write(line + b"\n")
                count += 1
    return ExportSummary(log_id, count, getattr(contents, "unreadable", 0))


def select_log(reader: SnapshotReader, organisation: str | None) -> str:
    """Return the id of the named log, or of the only one; raise DatabaseReadError otherwise."""
    log_ids = list(dict.fromkeys([*reader.organisations(), *reader.logs()]))
    if organisation is None and len(log_ids) == 1:
        return log_ids[0]
    listed = ", ".join(log_ids[:10]) or "none"
    if organisation is None:
        raise DatabaseReadError(f"there are {len(log_ids)} organisations: choose one with --organisation: {listed}")
    if organisation not in log_ids:
        raise DatabaseReadError(f"there is no organisation `{organisation}`: the organisations are {listed}")
    return organisation


@contextmanager
def _open_output(output: Path | None, directory: Path, *, private: bool) -> Iterator[BinaryIO]:
    """Yield the stream to write to; a file with content is readable by its owner only."""
    if output is None:
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
            yield out
        return
    if output.resolve().parent == directory.resolve():
        raise DatabaseReadError(f"{output} is in the server's data directory: choose another --output")
    try:
        with atomic_file(output, private=private) as out:
            yield out
    except OSError as error:
        raise DatabaseReadError(f"{output} cannot be written: {error.strerror}") from None
