"""HTTP: bytes to values and back. `app.py` wires, `routes.py` is the map, one file per noun."""
