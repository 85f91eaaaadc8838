"""Parts of the logic guard: assertions, propositions, comparisons. The entry point is `logic.py`."""
