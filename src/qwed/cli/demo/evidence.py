"""Log verification at the end of the demo: the real log is valid, a forged copy is detected."""

import json
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qwed.cli.demo.demo_server import QWED, environment
from qwed.store.data_directory import FILE_NAME, connect

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

_COPIED = ("signing.jwks", "vault.key")
_SECONDS = 60
FORGERY = "UPDATE activities SET leaf = replace(leaf, '\"DENIED\"', '\"APPROVED\"')"
"""Statement that forges the entry of the denied DROP TABLE."""
_FORGED_ROW = f"{FORGERY}, decision = 'APPROVED' WHERE activity_id = ?"


class LogCheck(NamedTuple):
    """Result of `qwed audit verify`."""

    valid: bool
    entries: int
    heads: int
    findings: tuple[str, ...]


class LogEvidence(NamedTuple):
    """Results for the real log and for a copy with one forged entry."""

    honest: LogCheck
    forged: LogCheck
    deviations: tuple[str, ...]


def gather_evidence(data_dir: Path, directory: Path, owner: "QWEDClient", denied: str) -> LogEvidence:
    """Verify the log of the running server, then forge the entry of the action `denied` in a copy and verify that.

    Both are compared with the server's newest signed head.
    """
    from qwed_sdk import QWEDError

    saved = directory / "head.json"
    try:
        saved.write_text(json.dumps(dict(owner.audit_head())))
    except QWEDError as error:
        empty = LogCheck(False, 0, 0, ())
        return LogEvidence(empty, empty, (f"the head of the log could not be read: {error}",))
    honest = _verify(data_dir, saved)
    forged = _verify(_forge_copy(data_dir, directory / "copy", denied), saved)
    return LogEvidence(honest, forged, tuple(_deviations(honest, forged)))


def _deviations(honest: LogCheck, forged: LogCheck) -> list[str]:
    problems = [] if honest.valid else ["the log does not verify: " + "; ".join(honest.findings)]
    return problems if not forged.valid else [*problems, "the forged entry was not detected"]


def _verify(data_dir: Path, head: Path) -> LogCheck:
    command = [*QWED, "audit", "verify", "--data-dir", str(data_dir), "--head", str(head), "--json"]
    process = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=_SECONDS)  # noqa: S603
    try:
        report = json.loads(process.stdout)
    except ValueError:
        return LogCheck(False, 0, 0, (process.stderr.strip() or "no output",))
    logs = report["logs"]
    findings = [finding for log in logs for finding in log["findings"]] + report["findings"]
    return LogCheck(
        report["valid"] and process.returncode == 0,
        sum(log["size"] for log in logs),
        sum(log["heads"] for log in logs),
        tuple(f"{finding['where']}: {finding['what']}" for finding in findings),
    )


def _forge_copy(data_dir: Path, copy: Path, denied: str) -> Path:
    copy.mkdir(mode=0o700)
    for name in _COPIED:
        shutil.copy2(data_dir / name, copy / name)
    with closing(connect(str(data_dir / FILE_NAME))) as source, closing(connect(str(copy / FILE_NAME))) as target:
        source.backup(target)
        target.execute(_FORGED_ROW, (denied,))
    return copy
