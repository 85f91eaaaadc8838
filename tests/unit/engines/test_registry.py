"""Design 8: the ENGINES table."""

import dataclasses
import re
from importlib import import_module
from pathlib import Path

import pytest

from qwed.engines import registry
from qwed.engines.registry import ENGINE_NAMES, ENGINES, EngineRow


def test_every_engine_of_the_protocol_is_there() -> None:
    assert set(ENGINES) == {*ENGINE_NAMES, "shell"}


@pytest.mark.parametrize("name", ENGINES)
def test_every_row_is_found_under_its_own_name_and_lives_beside_the_table(name: str) -> None:
    row = ENGINES[name]
    assert (row.name, row.module) == (name, f"qwed.engines.{name}")
    assert row.version >= 1


def test_only_engines_that_start_no_thread_are_warmed_before_the_fork() -> None:
    assert ENGINES["logic"].warm == ()
    assert ENGINES["math"].warm


PACKS = ("legal", "finance", "ucp", "tax")
_CLOCK = re.compile(r"\b(?:today|now|utcnow|localtime|gmtime|time|monotonic)\(\)|\bnow\(UTC\)")


@pytest.mark.parametrize("pack", PACKS)
def test_a_pack_that_looks_at_the_clock_is_not_remembered(pack: str) -> None:
    source = Path(str(import_module(f"qwed_{pack}").__file__)).parent.rglob("*.py")
    looks = any(_CLOCK.search(file.read_text()) for file in source)
    assert not (looks and ENGINES[pack].cacheable)


def test_a_row_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ENGINES["math"].module = "elsewhere"  # type: ignore[misc]


def test_a_row_says_which_argument_is_which() -> None:
    with pytest.raises(TypeError):
        EngineRow("math", "qwed.engines.math")  # type: ignore[call-arg]


def test_the_table_tells_how_to_add_an_engine() -> None:
    assert registry.__doc__ is not None
    assert "To add one" in registry.__doc__
