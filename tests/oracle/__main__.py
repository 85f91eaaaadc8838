"""Runner: python -m tests.oracle shell|sql|python --count N --seed S [--record FILE], or --recheck FILE...

`--recheck` judges recorded runs with the present classifiers and the present rules of the oracle.
"""

import argparse
import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.oracle import (
    campaign,
    python_campaign,
    python_oracle,
    recording,
    shell_campaign,
    shell_oracle,
    sql_campaign,
    sql_oracle,
)


class Area(NamedTuple):
    """Inputs of one area, and how they are run and judged."""

    inputs: Callable[[Namespace, list[str]], Iterator[Any]]
    run: Callable[[Sequence[Any]], Sequence[Any]]
    rejudge: Callable[[Sequence[recording.Record]], Sequence[Any]]
    shrink: Callable[[Any], Any]


def _commands(chosen: Namespace, extra: list[str]) -> Iterator[str]:
    return shell_campaign.select(chosen.seed, shell_campaign.generate(chosen.seed, chosen.grammar, extra))


def _statements(chosen: Namespace, extra: list[str]) -> Iterator[Any]:
    return sql_campaign.select(chosen.seed, sql_campaign.generate(chosen.seed, extra))


def _programs(chosen: Namespace, extra: list[str]) -> Iterator[str]:
    programs = python_campaign.generate(chosen.seed, extra, with_packages=chosen.packages)
    return python_campaign.select(chosen.seed, programs)


AREAS = {
    "shell": Area(_commands, shell_oracle.run, shell_oracle.rejudge, shell_oracle.shrink),
    "sql": Area(_statements, sql_oracle.run, sql_oracle.rejudge, sql_oracle.shrink),
    "python": Area(_programs, python_oracle.run, python_oracle.rejudge, python_oracle.shrink),
}


def main() -> None:
    """Run one campaign, or judge recorded ones again, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle")
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--count", type=int, help="inputs to run, 1,000 by default; with --recheck all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grammar", type=Path, help="option data for more programs, compressed JSON")
    parser.add_argument("--extra", type=Path, help="JSON lines with more inputs to mutate")
    parser.add_argument("--out", type=Path, help="file to append every failure to, as JSON lines")
    parser.add_argument("--record", type=Path, help="file to append every run to, compressed JSON lines")
    parser.add_argument("--recheck", type=Path, nargs="+", metavar="FILE", help="judge these recorded runs again")
    parser.add_argument("--packages", action="store_true", help="call functions of the installed packages too")
    chosen = parser.parse_args()
    figures = _campaign(AREAS[chosen.area], chosen)
    for group, rows in sorted(figures.groups.items()):
        print(" ".join(group), *(json.dumps(row, ensure_ascii=False) for row in rows), sep="\n    ")
    print(f"{chosen.area} {f'seed {chosen.seed}' if not chosen.recheck else 'judged again'}: {figures}")


def _campaign(area: Area, chosen: Namespace) -> campaign.Figures:
    report = partial(_report, chosen.out)
    if chosen.recheck:
        rows = recording.records(chosen.recheck)
        return campaign.run_campaign(rows, chosen.count, area.rejudge, area.shrink, report=report)
    inputs = area.inputs(chosen, _inputs(chosen.extra) if chosen.extra else [])
    run = partial(_recorded, area.run, chosen.record) if chosen.record else area.run
    return campaign.run_campaign(inputs, chosen.count or 1000, run, area.shrink, report=report)


def _recorded(run: Callable[[Sequence[Any]], Sequence[Any]], path: Path, inputs: Sequence[Any]) -> Sequence[Any]:
    runs = run(inputs)
    recording.append(path, runs)
    return runs


def _inputs(path: Path) -> list[str]:
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    inputs = [row["input"]["query"] if isinstance(row["input"], dict) else row["input"] for row in rows]
    return [text for text in inputs if isinstance(text, str)]


def _report(out: Path | None, figures: campaign.Figures, failed: Sequence[Any]) -> None:
    campaign.progress(figures, failed)
    if out is not None and failed:
        with out.open("a") as file:
            file.writelines(json.dumps(row.row(), ensure_ascii=False) + "\n" for row in failed)


if __name__ == "__main__":
    main()
