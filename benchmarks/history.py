"""Data directory with a history of any number of activities, under signed heads."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from qwed.domain.budget import UsageCounters
from qwed.domain.write_set import Committed
from qwed.kernel.bootstrap import close_services, open_services
from qwed.ledger import leaf
from qwed.ledger.keyring import Keyring, open_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.model.clock import Clock
from qwed.settings import Settings
from qwed.store.data_directory import FILE_NAME
from qwed.store.group_commit import BatchRows, PendingWrite, write_batch
from qwed.store.log import frontier_reader
from qwed.store.migrate import migrate

_FILL = 5_000


def filled(data: Path, activities: int) -> Path:
    """Create a directory that a server can be started on."""
    opened = open_services(Settings(data_dir=data))
    close_services(opened.services)
    log = Log(data / FILE_NAME, opened.organisation_id, open_keyring(data, None))
    log.grow_to(activities)
    log.close()
    return data


class Log:
    """A log file as the writer sees it."""

    def __init__(self, file: Path, log_id: str, keyring: Keyring) -> None:
        self.log_id = log_id
        self.keyring = keyring
        self._sequencer = Sequencer(keyring, Clock())
        self.connection = sqlite3.connect(file, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        migrate(self.connection)
        [[size]] = self.connection.execute("SELECT count(*) FROM activities WHERE organisation_id = ?", (log_id,))
        self.size = int(size)

    def grow_to(self, size: int, say: Callable[[str], None] | None = None) -> None:
        """Append until the log has this size."""
        while self.size < size:
            self.append(min(_FILL, size - self.size))
            if say is not None and self.size % 250_000 == 0:
                say(f"  a log of {self.size:,} leaves")

    def append(self, leaves: int) -> None:
        """Commit one batch."""
        batch = BatchRows([self._write(number) for number in range(leaves)])
        write_batch(self.connection, batch, self._sequencer, frontier_reader(self.connection))
        self.size += leaves

    def _write(self, number: int) -> PendingWrite:
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
        row = (self.log_id, index, activity_id, entry.agent_id, now, entry.decision, text, "x" * 400, "", None, None)
        return PendingWrite(result=Committed(index, UsageCounters()), activities=(row,))

    def close(self) -> None:
        """Close the file."""
        self.connection.close()
