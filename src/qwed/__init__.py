"""qwed: decides, before an AI agent acts, whether the action may happen."""

__version__ = "0.1.0"
