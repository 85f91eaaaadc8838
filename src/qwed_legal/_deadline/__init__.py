"""The parts of the deadline guard: how a term is read, whose calendar counts, and how a day is reckoned."""
