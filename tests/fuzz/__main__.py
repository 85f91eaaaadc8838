"""Fuzz one target: `python -m tests.fuzz math 20000 [folder]` exits with 0 and the number of executions, or the
finding."""

import sys
import tempfile
import time
from pathlib import Path

import atheris

from tests.fuzz.targets import TARGETS, seeds_of
from tests.support.case_tables import rows

_INSTRUMENTED = ["qwed", "qwed_sdk"]


def main(name: str, runs: int, folder: Path) -> None:
    """Run the target `runs` times, starting with the cases of its tables; never returns."""
    row = TARGETS[name]
    with atheris.instrument_imports(include=_INSTRUMENTED):
        target = row.make()

    def bounded(data: bytes) -> None:
        started = time.process_time()
        target(data)
        taken = time.process_time() - started
        if taken > row.seconds:
            raise TimeoutError(f"{taken:.1f} s for {data[:200]!r}")

    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = [seed for table in row.seeds for seed in seeds_of(rows(f"{table}.jsonl"), row.longest)]
    for number, seed in enumerate([*seeds, *row.files()]):
        (corpus / str(number)).write_bytes(seed)
    options = [f"-runs={runs}", f"-max_len={row.longest}", "-seed=1", "-print_final_stats=1", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/", str(corpus)], bounded)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp()))
