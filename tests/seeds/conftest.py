"""Fixture that runs a script printed in the documents."""

import pytest

from tests.seeds.blocks import Run, block


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the block of this name, and tells the lines that it printed."""

    def call(name: str) -> list[str]:
        exec(compile(block(name), name, "exec"), {})
        return capsys.readouterr().out.splitlines()

    return call
