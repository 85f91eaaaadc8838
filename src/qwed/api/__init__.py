"""HTTP: bytes to values and back. `app.py` wires, `routes/` is the map, one file per noun."""
