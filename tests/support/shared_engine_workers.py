"""Engine workers shared by all gates of a test process: loading the engines takes longer than most tests."""

from dataclasses import replace
from functools import cache

from qwed.engines.pool import EnginePool
from qwed.engines.registry import ENGINES
from qwed.engines.verdict_cache import VerdictCache
from qwed.kernel.bootstrap import OpenedServices


class _SharedVerdictCache(VerdictCache):
    """Verdict cache of one gate; the shared workers stay when it is closed."""

    def close(self) -> None:
        """Do nothing."""


def share_engine_workers(opened: OpenedServices) -> OpenedServices:
    """Return the same services on the shared workers; their own never start."""
    services = opened.services
    return opened._replace(
        services=replace(services, engines=_SharedVerdictCache(_workers(), services.settings.engine_seconds))
    )


def shared_verdicts(seconds: float = 10.0) -> VerdictCache:
    """Return a verdict cache on the shared workers, without a gate."""
    return _SharedVerdictCache(_workers(), seconds)


def end_workers() -> None:
    """Stop the workers after the last test."""
    _workers().close()


@cache
def _workers() -> EnginePool:
    return EnginePool(ENGINES.values())
