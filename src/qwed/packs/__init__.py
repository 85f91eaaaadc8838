"""Shared parts of the domain packs: result type, value parsing, countries."""
