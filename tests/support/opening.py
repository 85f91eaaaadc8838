"""Gates and services as `qwed.open` and `open_services` give them, on the store that the test run has chosen."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import qwed
from qwed.gate import Gate
from qwed.kernel import wiring
from qwed.kernel.wiring import Opened
from qwed.settings import Settings
from qwed.store.sqlite import MEMORY
from qwed.words.clock import Clock
from tests.support.chosen import SQLITE, chosen


def open_gate(place: str | Path = MEMORY, **settings: Any) -> Gate:
    """As `qwed.open`."""
    if chosen.store == SQLITE:
        return qwed.open(place, **settings)
    directory = chosen.directory() if place == MEMORY else Path(place)
    return qwed.open(directory, database_url=chosen.url(directory), **settings)


def open_services(settings: Settings, *, in_memory: bool = False, clock: Clock | None = None) -> Opened:
    """As the kernel's own."""
    if chosen.store == SQLITE:
        return wiring.open_services(settings, in_memory=in_memory, clock=clock)
    directory = chosen.directory() if in_memory else settings.directory
    return wiring.open_services(replace(settings, data_dir=directory, database_url=chosen.url(directory)), clock=clock)
