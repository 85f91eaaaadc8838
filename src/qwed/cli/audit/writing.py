"""Writing an export: whose log it is, which keys open it, and the file it goes to."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from qwed.cli.audit.export import Opened, export_lines, nothing
from qwed.cli.audit.keys import master_in, published_in, subject_keys
from qwed.cli.files import whole_file
from qwed.ledger.vault import MASTER_FILE
from qwed.store.reader import Reader, Unreadable, open_reader


class Written(NamedTuple):
    """What an export holds."""

    organisation: str
    lines: int
    unreadable: int
    """Contents that did not open."""


def write_export(
    directory: Path, organisation: str | None, output: Path | None, *, payloads: bool, database_url: str = ""
) -> Written:
    """Write one log to a file, or to standard output."""
    published, master = published_in(directory), master_in(directory)
    if payloads and master is None:
        raise Unreadable(f"{directory / MASTER_FILE} is not there: without it no content can be read")
    with open_reader(directory, database_url) as reader:
        log_id = one_log(reader, organisation)
        contents = Opened(subject_keys(reader, master)) if payloads and master is not None else nothing
        count = 0
        with _opened(output, directory, private=payloads) as out:
            for line in export_lines(reader, log_id, published, contents):
                out.write(line + b"\n")
                count += 1
    return Written(log_id, count, getattr(contents, "unreadable", 0))


def one_log(reader: Reader, organisation: str | None) -> str:
    """The log that is meant, which there must be."""
    known = list(dict.fromkeys([*reader.organisations(), *reader.logs()]))
    if organisation is None and len(known) == 1:
        return known[0]
    listed = ", ".join(known[:10]) or "none"
    if organisation is None:
        raise Unreadable(f"there are {len(known)} organisations: name one with --organisation, such as {listed}")
    if organisation not in known:
        raise Unreadable(f"there is no organisation `{organisation}`: known are {listed}")
    return organisation


@contextmanager
def _opened(output: Path | None, directory: Path, *, private: bool) -> Iterator[BinaryIO]:
    """The place to write to; a file with content in it is readable by its owner alone."""
    if output is None:
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
            yield out
        return
    if output.resolve().parent == directory.resolve():
        raise Unreadable(f"{output} would lie among the files of the server: choose another --output")
    try:
        with whole_file(output, private=private) as out:
            yield out
    except OSError as error:
        raise Unreadable(f"{output} cannot be written: {error.strerror}") from None
