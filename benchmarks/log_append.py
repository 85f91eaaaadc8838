"""Cost of appending a batch to a log of ten and of a million leaves, and time to verify a million.

CPU time of the writer thread's own function on files: the same tables, indexes, tree and signature as in the server.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.history import Log
from benchmarks.measure import interleaved, ratio
from benchmarks.report import Row, Say, absolute, at_most
from qwed.ledger import verifier
from qwed.ledger.keyring import fresh_keyring
from qwed.ledger.sequencer import head_from
from qwed.ledger.verifier import leaf_hash

FEW, MANY = 10, 1_000_000
_BATCH = 32
_BATCHES = 40
_LOG = "org_bench"
_encode = msgspec.json.Encoder().encode


def rows(rounds: int, say: Say) -> list[Row]:
    """Measure appending, then verifying."""
    with tempfile.TemporaryDirectory() as place, closing(_log(Path(place))) as log:
        log.grow_to(MANY, say)
        costs: dict[str, Callable[[], float]] = {
            f"append to a log of {FEW:,}": _short,
            f"append to a log of {MANY:,}": lambda: _cpu(log),
        }
        seen = interleaved(costs, rounds)
        short, long = seen
        say("  checking it")
        return [
            Row(f"{long} / {short}, CPU a leaf", ratio(seen[long], seen[short]), at_most(1.15)),
            *(absolute(f"{name}, us of CPU a leaf", values) for name, values in seen.items()),
            absolute("a million leaves verified offline, seconds", [seconds_to_verify(log)], at_most(60)),
        ]


def _log(place: Path) -> Log:
    return Log(place / "log.db", _LOG, fresh_keyring())


def _export(log: Log) -> Iterator[dict[str, object]]:
    """Yield the lines that `qwed audit export` writes."""
    heads = dict(log.connection.execute("SELECT size, signature FROM heads"))
    yield {"qwed_log": 1, "log_id": _LOG, "issuer": log.keyring.issuer}
    for index, text in log.connection.execute("SELECT log_index, leaf FROM activities ORDER BY log_index"):
        yield {"entry": {"index": index, "leaf": text, "leaf_hash": leaf_hash(text.encode()).hex()}}
        if index + 1 in heads:
            yield {"head": head_from(heads[index + 1])}
    yield {"keys": log.keyring.public_jwks()}


def seconds_to_verify(log: Log) -> float:
    """Return the time the stand-alone verifier takes for the whole log."""
    with tempfile.TemporaryDirectory() as place:
        export, jwks = Path(place) / "export.jsonl", Path(place) / "jwks.json"
        jwks.write_bytes(_encode({"keys": log.keyring.public_jwks()}))
        with export.open("wb") as out:
            out.writelines(_encode(line) + b"\n" for line in _export(log))
        begun = time.monotonic()
        command = [sys.executable, verifier.__file__, str(export), "--jwks", str(jwks)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun


def _short() -> float:
    """Append to a new log each time, so that it stays short."""
    with tempfile.TemporaryDirectory() as place, closing(_log(Path(place))) as log:
        log.grow_to(FEW)
        return _cpu(log)


def _cpu(log: Log) -> float:
    begun = time.process_time()
    for _ in range(_BATCHES):
        log.append(_BATCH)
    return (time.process_time() - begun) / (_BATCHES * _BATCH) * 1e6
