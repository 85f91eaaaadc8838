"""Parts of the stats engine: the file, the claim, and the query that settles it. `stats.py` is the door."""
