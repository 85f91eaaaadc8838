"""JSON as the client reads it: `qwed.words.strict`, by the name that it had before."""

from qwed.words.strict import NotStrict, read_json

__all__ = ["NotStrict", "read_json"]
