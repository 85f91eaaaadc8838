"""Registry of engines, one row each.

To add one: write `qwed/engines/<name>.py` with `verify(request: EngineRequest) -> Verdict` whose verdicts carry
`engine="<name>"`, add a row here, and a table of cases under `tests/data/`. The module is imported only in the engine
workers, so it may import anything. It runs with a memory limit and a deadline, and an exception ends that worker. Raise
`version` when the same input may be answered differently, because cached verdicts depend on it. Add requests to `warm`
if the first answer is slow.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from qwed.engines.protocol import EngineRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRow:
    """One engine: name, module and caching behaviour."""

    name: str
    module: str
    version: int = 1
    permitted_by_name: bool = True
    """True if `allowed_engines` names it; the shell is permitted like a tool."""
    warm: tuple[EngineRequest, ...] = ()
    """Requests run once after loading, before workers are forked, so that no worker imports late. Not for an engine
    that starts threads: a fork does not inherit them."""
    extra: str = "engines"
    """Extra to install if it cannot be loaded."""
    batch_size: int = 1
    """Maximum requests of one owner handed to a worker at once, if each is short."""
    cacheable: bool = True
    """False if the verdict depends on the date."""


def _by_name(rows: Iterable[EngineRow]) -> dict[str, EngineRow]:
    return {row.name: row for row in rows}


def _queries(*texts: str) -> tuple[EngineRequest, ...]:
    return tuple(EngineRequest(query=text) for text in texts)


_SEVERAL = 16
_IDENTITY, _LENGTHS = "sin(x)^2 + cos(x)^2 = 1", "5 km + 300 m = 5.3 km"

ENGINES: dict[str, EngineRow] = _by_name(
    (
        EngineRow(name="math", module="qwed.engines.math", version=5, warm=_queries(_IDENTITY, _LENGTHS)),
        EngineRow(name="logic", module="qwed.engines.logic", version=3),
        EngineRow(
            name="code",
            module="qwed.engines.code",
            version=7,
            warm=(EngineRequest(code="print(1 + 1)"),),
            batch_size=_SEVERAL,
        ),
        EngineRow(
            name="sql",
            module="qwed.engines.sql",
            version=3,
            warm=_queries("SELECT id FROM users"),
            batch_size=_SEVERAL,
        ),
        EngineRow(
            name="shell",
            module="qwed.engines.shell",
            version=2,
            permitted_by_name=False,
            warm=_queries("ls -l"),
            batch_size=_SEVERAL,
        ),
        EngineRow(name="fact", module="qwed.engines.fact", version=5),
        EngineRow(name="stats", module="qwed.engines.stats"),
        EngineRow(name="image", module="qwed.engines.image", version=2),
        EngineRow(name="consensus", module="qwed.engines.consensus", version=2),
        EngineRow(name="legal", module="qwed.engines.legal", version=2, extra="legal", cacheable=False),
        EngineRow(name="finance", module="qwed.engines.finance", version=2, extra="finance"),
        EngineRow(name="ucp", module="qwed.engines.ucp", version=2, extra="ucp"),
        EngineRow(name="tax", module="qwed.engines.tax", version=2, extra="tax"),
    )
)

ENGINE_NAMES = tuple(sorted(row.name for row in ENGINES.values() if row.permitted_by_name))
"""Engines of the protocol, which an agent's permissions may name."""
