"""Turns CrewAI's telemetry and traces off; imported first, since they are read when CrewAI itself is imported."""

import os
import tempfile
import warnings

from tests.support.quiet import CREWAI

# It keeps its memory and its settings there.
_HOME = tempfile.TemporaryDirectory(prefix="crewai-")

os.environ.update(CREWAI, HOME=_HOME.name)

with warnings.catch_warnings():
    # A circle in its own imports, which Python does not tell about by default.
    warnings.simplefilter("ignore", ImportWarning)
    import crewai  # noqa: F401
