"""Design 8: every engine there is, one row each.

To add one: write `qwed/engines/<name>.py` with `verify(request: EngineRequest) -> Verdict` whose verdicts carry
`engine="<name>"`, add a row here, and a table of cases under `tests/data/`. The module is imported in the engine
workers only, so it may import what it likes; it is called in a worker that has a memory limit and a deadline, and
whatever it raises ends that worker. Raise `version` whenever the same input may be answered differently: cached
verdicts are kept by it. Give it requests in `warm` if its first answer is slow.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from qwed.engines.protocol import EngineRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRow:
    """One engine: what it is called, where its `verify` lives, and which answers it gives."""

    name: str
    module: str
    version: int = 1
    permitted_by_name: bool = True
    """Whether an agent's permissions name it among their engines; the shell is permitted like a tool."""
    warm: tuple[EngineRequest, ...] = ()
    """Asked once when it is loaded, before workers are forked with it, so that none of them imports late. Not for an
    engine that starts threads: a fork has none of them."""
    extra: str = "engines"
    """What to install where it cannot be loaded."""
    together: int = 1
    """How many questions of one agent a worker is handed at once: several where each takes a moment."""
    lasting: bool = True
    """Whether the same input is answered alike on every day; a verdict that looks at the calendar is not remembered."""


def _by_name(rows: Iterable[EngineRow]) -> dict[str, EngineRow]:
    return {row.name: row for row in rows}


def _queries(*texts: str) -> tuple[EngineRequest, ...]:
    return tuple(EngineRequest(query=text) for text in texts)


_SEVERAL = 16
_IDENTITY, _LENGTHS = "sin(x)^2 + cos(x)^2 = 1", "5 km + 300 m = 5.3 km"

ENGINES: dict[str, EngineRow] = _by_name(
    (
        EngineRow(name="math", module="qwed.engines.math", version=4, warm=_queries(_IDENTITY, _LENGTHS)),
        EngineRow(name="logic", module="qwed.engines.logic", version=3),
        EngineRow(
            name="code",
            module="qwed.engines.code",
            version=7,
            warm=(EngineRequest(code="print(1 + 1)"),),
            together=_SEVERAL,
        ),
        EngineRow(
            name="sql",
            module="qwed.engines.sql",
            version=3,
            warm=_queries("SELECT id FROM users"),
            together=_SEVERAL,
        ),
        EngineRow(
            name="shell",
            module="qwed.engines.shell",
            version=2,
            permitted_by_name=False,
            warm=_queries("ls -l"),
            together=_SEVERAL,
        ),
        EngineRow(name="fact", module="qwed.engines.fact", version=4),
        EngineRow(name="stats", module="qwed.engines.stats"),
        EngineRow(name="image", module="qwed.engines.image", version=2),
        EngineRow(name="consensus", module="qwed.engines.consensus", version=2),
        EngineRow(name="legal", module="qwed.engines.legal", extra="legal", lasting=False),
        EngineRow(name="finance", module="qwed.engines.finance", extra="finance"),
        EngineRow(name="ucp", module="qwed.engines.ucp", extra="ucp"),
        EngineRow(name="tax", module="qwed.engines.tax", extra="tax"),
    )
)

ENGINE_NAMES = tuple(sorted(row.name for row in ENGINES.values() if row.permitted_by_name))
"""The engines of the protocol, which an agent's permissions may name."""
