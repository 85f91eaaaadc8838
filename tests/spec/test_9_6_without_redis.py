"""Spec 9.6, Fail-Closed Rate Limiting: a Redis that is asked for is never quietly done without."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.spec.sections import spec
from tests.support.server import SERVE


@spec("9.6", "guide/Fail-closed rate limiting")
@pytest.mark.parametrize("how", ["variable", "option"])
def test_a_redis_that_cannot_be_used_is_not_quietly_replaced_by_memory(tmp_path: Path, how: str) -> None:
    url = "redis://127.0.0.1:9/0"
    arguments, environment = (["--redis", url], {}) if how == "option" else ([], {"QWED_REDIS_URL": url})
    refused = subprocess.run(
        [*SERVE, "--data-dir", str(tmp_path / "data"), *arguments],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode != 0
    assert "counts in its own memory alone" in refused.stderr
    assert not (tmp_path / "data" / "qwed.db").exists()
