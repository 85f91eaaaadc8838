"""Everything that commands, programs and statements do is predicted: small campaigns, and long drills."""

import json
from collections.abc import Iterator

import pytest

from tests.oracle import campaign as campaigns
from tests.oracle import (
    python_campaign,
    python_oracle,
    shell_campaign,
    shell_oracle,
    sql_campaign,
    sql_execution,
    sql_oracle,
)
from tests.support.campaign_table import Figure, campaign

SEEDS = range(1, 26)


def assert_covered(figures: campaigns.Figures) -> None:
    """Fail with the shortest failure of each group."""
    rows = [json.dumps(row, ensure_ascii=False) for rows in figures.groups.values() for row in rows]
    assert not rows, "\n".join((f"more happened than was predicted ({figures}):", *rows))


def shell_figures(seed: int, count: int) -> campaigns.Figures:
    """Run generated commands."""
    commands = shell_campaign.select(seed, shell_campaign.generate(seed))
    return campaigns.run_campaign(commands, count, shell_oracle.run, shell_oracle.shrink)


def python_figures(seed: int, count: int, *, with_packages: bool = False) -> campaigns.Figures:
    """Run generated programs."""
    programs = python_campaign.select(seed, python_campaign.generate(seed, with_packages=with_packages))
    return campaigns.run_campaign(programs, count, python_oracle.run, python_oracle.shrink)


def sql_figures(seed: int, count: int) -> campaigns.Figures:
    """Run generated statements on every database that can be started."""
    statements = sql_campaign.select(seed, sql_campaign.generate(seed))
    return campaigns.run_campaign(statements, count, sql_oracle.run, sql_oracle.shrink, chunk=400)


def batches(texts: tuple[str, ...], size: int = 500) -> Iterator[list[str]]:
    """Yield the texts in lists."""
    for start in range(0, len(texts), size):
        yield list(texts[start : start + size])


def test_commands_do_what_was_predicted() -> None:
    assert_covered(shell_figures(101, 1600))


def test_programs_do_what_was_predicted() -> None:
    assert_covered(python_figures(101, 600))


def test_statements_do_what_was_predicted() -> None:
    assert_covered(sql_figures(101, 300))


def test_every_database_can_be_started() -> None:
    missing = sql_execution.missing_databases()
    if missing:
        pytest.skip("SQL runs without " + "; without ".join(missing))


@pytest.mark.drill
@campaign("effects", "every command of the tables, run")
def test_the_commands_of_the_tables_do_what_was_predicted(figure: Figure) -> None:
    for batch in batches(shell_campaign.tables()):
        figures = campaigns.run_campaign(iter(batch), len(batch), shell_oracle.run)
        count(figure, "commands", figures)
        assert_covered(figures)


@pytest.mark.drill
@campaign("effects", "generated commands, run")
@pytest.mark.parametrize("seed", SEEDS)
def test_many_commands_do_what_was_predicted(seed: int, figure: Figure) -> None:
    figures = shell_figures(seed, 4000)
    count(figure, "commands", figures)
    assert_covered(figures)


@pytest.mark.drill
@campaign("effects", "generated programs, run")
@pytest.mark.parametrize("seed", SEEDS)
def test_many_programs_do_what_was_predicted(seed: int, figure: Figure) -> None:
    figures = python_figures(seed, 800, with_packages=True)
    count(figure, "programs", figures)
    assert_covered(figures)


@pytest.mark.drill
@campaign("effects", "every function of four databases, called")
def test_calls_of_every_function_do_what_was_predicted(figure: Figure) -> None:
    statements = sql_campaign.select(1, sql_campaign.every_call(1), one_in=1000)
    figures = campaigns.run_campaign(statements, None, sql_oracle.run, sql_oracle.shrink)
    count(figure, "statements", figures)
    assert_covered(figures)


@pytest.mark.drill
@campaign("effects", "generated statements, run on four databases")
@pytest.mark.parametrize("seed", SEEDS)
def test_many_statements_do_what_was_predicted(seed: int, figure: Figure) -> None:
    figures = sql_figures(seed, 2000)
    count(figure, "statements", figures)
    figure("databases", len(sql_execution.databases()) if seed == SEEDS[0] else 0)
    assert_covered(figures)


def count(figure: Figure, name: str, figures: campaigns.Figures) -> None:
    """Report the counts of a campaign."""
    figure(f"{name} run", figures.executed)
    figure("predicted harmless", figures.harmless)
    figure("did more", figures.failures)
