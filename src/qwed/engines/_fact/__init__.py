"""Parts of the fact engine: the text, its clauses, numbers and dates. `fact.py` is the door."""
