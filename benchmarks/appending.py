"""What one more batch of leaves costs in a log of ten and in a log of a million, and how long a million take to check.

CPU time of the writing thread's own function, on files: the same tables, indices, tree and signature as in the server.
"""

import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from qwed.ledger import leaf, verifier
from qwed.ledger.keyring import fresh_keyring
from qwed.ledger.sequencer import Sequencer, head_from
from qwed.ledger.verifier import leaf_hash
from qwed.store.migrate import migrate
from qwed.store.protocol import Settled
from qwed.store.usage import Spent
from qwed.store.writer import Write, write_batch
from qwed.words.clock import Clock

FEW, MANY = 10, 1_000_000
_BATCH = 32
_BATCHES = 40
_FILL = 5_000
_LOG = "org_bench"
_encode = msgspec.json.Encoder().encode


class Log:
    """A log in a file of its own, as the writer sees it."""

    def __init__(self, file: Path, size: int, say: Callable[[str], None]) -> None:
        self.file = file
        self.size = 0
        self.keyring = fresh_keyring()
        self._sequencer = Sequencer(self.keyring, Clock())
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        migrate(self._connection)
        while self.size < size:
            self.append(min(_FILL, size - self.size))
            if self.size % 250_000 == 0:
                say(f"  a log of {self.size:,} leaves")

    def append(self, leaves: int) -> None:
        """One commit."""
        write_batch(self._connection, [self._write(number) for number in range(leaves)], self._sequencer)
        self.size += leaves

    def _write(self, number: int) -> Write:
        index, now = self.size + number, 1_700_000_000.0 + (self.size + number) / 100
        activity_id = f"act_{index:026x}"
        entry = leaf.Leaf(
            v=leaf.VERSION,
            action_type="execute_sql",
            activity_id=activity_id,
            agent_id="agent_5f1c0a6f2b7d4f0e9a3c",
            by="agent_5f1c0a6f2b7d4f0e9a3c",
            commitment="a420cde61fb3c8d0e5688223129c87b39c8d4e9a9063f8d00e6cc0152b78f6eb",
            cost_micros=10_000,
            decision="APPROVED",
            engine="sql",
            latency_us=900,
            policy_hash="ad41c5dafc679cd1310289269fcb9d8c60ab5b0fbe424bb325d7db74eecc3abf",
            risk_level="low",
            status="VERIFIED",
            step_number=index % 50 + 1,
            time_ms=int(now * 1000),
        )
        text = leaf.encode(entry).decode()
        row = (_LOG, index, activity_id, entry.agent_id, now, entry.decision, text, "x" * 400, "", None, None)
        return Write(result=Settled(index, Spent()), activities=(row,))

    def export(self) -> Iterator[dict[str, object]]:
        """Its lines, as `qwed audit export` writes them."""
        heads = dict(self._connection.execute("SELECT size, signature FROM heads"))
        yield {"qwed_log": 1, "log_id": _LOG, "issuer": self.keyring.issuer}
        for index, text in self._connection.execute("SELECT log_index, leaf FROM activities ORDER BY log_index"):
            yield {"entry": {"index": index, "leaf": text, "leaf_hash": leaf_hash(text.encode()).hex()}}
            if index + 1 in heads:
                yield {"head": head_from(heads[index + 1])}
        yield {"keys": self.keyring.public_jwks()}

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


@contextmanager
def long_log(say: Callable[[str], None]) -> Iterator[Log]:
    """A log of a million leaves."""
    with tempfile.TemporaryDirectory() as place, closing(Log(Path(place) / "long.db", MANY, say)) as log:
        yield log


def seconds_to_verify(log: Log) -> float:
    """How long the verifier, run as the one file an auditor is given, takes to check the whole log."""
    with tempfile.TemporaryDirectory() as place:
        export, jwks = Path(place) / "export.jsonl", Path(place) / "jwks.json"
        jwks.write_bytes(_encode({"keys": log.keyring.public_jwks()}))
        with export.open("wb") as out:
            out.writelines(_encode(line) + b"\n" for line in log.export())
        begun = time.monotonic()
        command = [sys.executable, verifier.__file__, str(export), "--jwks", str(jwks)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun


def contenders(log: Log) -> dict[str, Callable[[], float]]:
    """Microseconds of processor time per leaf, for each."""
    return {f"append to a log of {FEW:,}": _short, f"append to a log of {MANY:,}": lambda: _cpu(log)}


def _short() -> float:
    """In a log that is new each time, or it would not stay short."""
    with (
        tempfile.TemporaryDirectory() as place,
        closing(Log(Path(place) / "short.db", FEW, lambda _text: None)) as log,
    ):
        return _cpu(log)


def _cpu(log: Log) -> float:
    begun = time.process_time()
    for _ in range(_BATCHES):
        log.append(_BATCH)
    return (time.process_time() - begun) / (_BATCHES * _BATCH) * 1e6
