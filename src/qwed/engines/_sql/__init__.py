"""Parts of the SQL engine: parsing, names, effects, injection, repair. `sql.py` is the door."""
