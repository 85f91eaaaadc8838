"""`qwed.open` and `open_services` on the store that the test run selected."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import qwed
from qwed.gate import Gate
from qwed.kernel import bootstrap
from qwed.kernel.bootstrap import OpenedServices
from qwed.model.clock import Clock
from qwed.settings import Settings
from qwed.store.sqlite import MEMORY
from tests.support.store_choice import SQLITE, chosen


def open_gate(place: str | Path = MEMORY, **settings: Any) -> Gate:
    """Open a gate as `qwed.open` does."""
    if chosen.store == SQLITE:
        return qwed.open(place, **settings)
    directory = chosen.directory() if place == MEMORY else Path(place)
    return qwed.open(directory, database_url=chosen.url(directory), **settings)


def open_services(settings: Settings, *, in_memory: bool = False, clock: Clock | None = None) -> OpenedServices:
    """Open services as the kernel does."""
    if chosen.store == SQLITE:
        return bootstrap.open_services(settings, in_memory=in_memory, clock=clock)
    directory = chosen.directory() if in_memory else settings.directory
    return bootstrap.open_services(
        replace(settings, data_dir=directory, database_url=chosen.url(directory)), clock=clock
    )
