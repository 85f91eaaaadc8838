"""CrewAI cannot share the environment of the other frameworks: its tests are collected where it is installed."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("crewai") else ["crewai"]
