"""The end of the story: the log is verified by the command that anybody may run, and a forger is found out."""

import json
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qwed.cli.demo.house import QWED, environment
from qwed.store.place import FILE_NAME, connect

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

_COPIED = ("signing.jwks", "vault.key")
_SECONDS = 60
FORGERY = "UPDATE activities SET leaf = replace(leaf, '\"DENIED\"', '\"APPROVED\"')"
"""What a forger would do to the entry that says the table was not to be dropped."""
_FORGED_ROW = f"{FORGERY}, decision = 'APPROVED' WHERE activity_id = ?"


class Checked(NamedTuple):
    """What `qwed audit verify` said."""

    valid: bool
    entries: int
    heads: int
    findings: tuple[str, ...]


class Evidence(NamedTuple):
    """The log as it is, and a copy in which one entry was changed."""

    honest: Checked
    forged: Checked
    deviations: tuple[str, ...]


def gathered(data_dir: Path, place: Path, owner: "QWEDClient", denied: str) -> Evidence:
    """Verify the log beside the running server; then change the entry of the action `denied` in a copy, and verify it.

    Both are held against the head that the server has signed last.
    """
    from qwed_sdk import QWEDError

    saved = place / "head.json"
    try:
        saved.write_text(json.dumps(dict(owner.audit_head())))
    except QWEDError as error:
        nothing = Checked(False, 0, 0, ())
        return Evidence(nothing, nothing, (f"the log could not be asked for its head: {error}",))
    honest = _verified(data_dir, saved)
    forged = _verified(_forged(data_dir, place / "copy", denied), saved)
    return Evidence(honest, forged, tuple(_deviations(honest, forged)))


def _deviations(honest: Checked, forged: Checked) -> list[str]:
    wrong = [] if honest.valid else ["the log does not verify: " + "; ".join(honest.findings)]
    return wrong if not forged.valid else [*wrong, "the forged entry was not found"]


def _verified(data_dir: Path, head: Path) -> Checked:
    command = [*QWED, "audit", "verify", "--data-dir", str(data_dir), "--head", str(head), "--json"]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=_SECONDS)  # noqa: S603
    try:
        report = json.loads(ran.stdout)
    except ValueError:
        return Checked(False, 0, 0, (ran.stderr.strip() or "it said nothing",))
    logs = report["logs"]
    findings = [each for log in logs for each in log["findings"]] + report["findings"]
    return Checked(
        report["valid"] and ran.returncode == 0,
        sum(log["size"] for log in logs),
        sum(log["heads"] for log in logs),
        tuple(f"{each['where']}: {each['what']}" for each in findings),
    )


def _forged(data_dir: Path, copy: Path, denied: str) -> Path:
    copy.mkdir(mode=0o700)
    for name in _COPIED:
        shutil.copy2(data_dir / name, copy / name)
    with closing(connect(str(data_dir / FILE_NAME))) as books, closing(connect(str(copy / FILE_NAME))) as other:
        books.backup(other)
        other.execute(_FORGED_ROW, (denied,))
    return copy
