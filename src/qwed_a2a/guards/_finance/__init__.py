"""Parts of the finance guard: numbers, names of members, the invoice itself. `finance.py` is the door."""
