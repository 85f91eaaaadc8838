"""Decision kernel: from a request to an answer. Start with `pipeline.py`."""
