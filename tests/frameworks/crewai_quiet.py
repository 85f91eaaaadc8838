"""Disables CrewAI's telemetry and traces; imported first, because CrewAI reads the settings when it is imported."""

import os
import tempfile
import warnings

from tests.support.telemetry_off import CREWAI

# CrewAI stores its memory and settings there.
_HOME = tempfile.TemporaryDirectory(prefix="crewai-")

os.environ.update(CREWAI, HOME=_HOME.name)

with warnings.catch_warnings():
    # Circular imports inside CrewAI, a warning that Python hides by default.
    warnings.simplefilter("ignore", ImportWarning)
    import crewai  # noqa: F401
