"""Engine workers that every gate of a test process may share: to load the engines takes longer than most tests."""

from dataclasses import replace
from functools import cache

from qwed.engines.pool import EnginePool
from qwed.engines.table import ENGINES
from qwed.engines.verdicts import Verdicts
from qwed.kernel.wiring import Opened


class _Shared(Verdicts):
    """What was judged is remembered by each for itself; the workers stay when one of them is closed."""

    def close(self) -> None:
        """End nothing."""


def sharing(opened: Opened) -> Opened:
    """The same services, asking the workers of everybody instead of their own, which then never start."""
    services = opened.services
    return opened._replace(services=replace(services, engines=_Shared(_workers(), services.settings.engine_seconds)))


def shared_verdicts(seconds: float = 10.0) -> Verdicts:
    """Verdicts of the workers of everybody, where no gate is open."""
    return _Shared(_workers(), seconds)


def end_workers() -> None:
    """When the last test has run."""
    _workers().close()


@cache
def _workers() -> EnginePool:
    return EnginePool(ENGINES.values())
