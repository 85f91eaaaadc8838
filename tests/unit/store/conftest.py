"""A store of either kind, and one on disk, each with `agent_1`; a module may have its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores import KINDS, Shop, agent_of, opened


@pytest.fixture
def tmp_path(memory_path: Path) -> Path:
    """What is kept, and in which order, is the same wherever the file is."""
    return memory_path


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    yield from opened(request.param, tmp_path, agent_of())


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Shop]:
    yield from opened("file", tmp_path, agent_of())
