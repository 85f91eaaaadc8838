"""Parts of the math engine: reading notation, exact arithmetic, and the proofs. `math.py` is the door."""
