"""Runner: python -m tests.oracle shell|sql|python --count N --seed S [--grammar FILE] [--extra FILE] [--out FILE]."""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.oracle import (
    campaign,
    python_campaign,
    python_oracle,
    shell_campaign,
    shell_oracle,
    sql_campaign,
    sql_oracle,
)


def main() -> None:
    """Run one campaign and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle")
    parser.add_argument("area", choices=("shell", "sql", "python"))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grammar", type=Path, help="option data for more programs, compressed JSON")
    parser.add_argument("--extra", type=Path, help="JSON lines with more inputs to mutate")
    parser.add_argument("--out", type=Path, help="file to append every failure to, as JSON lines")
    parser.add_argument("--packages", action="store_true", help="call functions of the installed packages too")
    chosen = parser.parse_args()
    extra = _inputs(chosen.extra) if chosen.extra else []
    report = partial(_report, chosen.out)
    if chosen.area == "shell":
        inputs = shell_campaign.select(chosen.seed, shell_campaign.generate(chosen.seed, chosen.grammar, extra))
        figures = campaign.run_campaign(inputs, chosen.count, shell_oracle.run, shell_oracle.shrink, report=report)
    elif chosen.area == "sql":
        statements = sql_campaign.select(chosen.seed, sql_campaign.generate(chosen.seed, extra))
        figures = campaign.run_campaign(statements, chosen.count, sql_oracle.run, sql_oracle.shrink, report=report)
    else:
        programs = python_campaign.generate(chosen.seed, extra, with_packages=chosen.packages)
        inputs = python_campaign.select(chosen.seed, programs)
        figures = campaign.run_campaign(inputs, chosen.count, python_oracle.run, python_oracle.shrink, report=report)
    for group, rows in sorted(figures.groups.items()):
        print(" ".join(group), *(json.dumps(row, ensure_ascii=False) for row in rows), sep="\n    ")
    print(f"{chosen.area} seed {chosen.seed}: {figures}")


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
