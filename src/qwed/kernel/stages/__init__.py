"""The stages of a decision, one function per file, in the order of `pipeline.py`."""
