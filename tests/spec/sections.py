"""The sections of the two documents that these tests read out; a coverage test keeps the list true."""

from typing import Any

import pytest

GUIDE = "guide"


def spec(*sections: str) -> Any:
    """Marks a test with the sections it reads out, such as `9.2` or `guide/Decision matrix`."""
    return pytest.mark.spec(*sections)
