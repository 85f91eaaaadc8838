"""The decision: one straight walk from a request to an answer. Start with `pipeline.py`."""
