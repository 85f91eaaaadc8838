"""An organisation's policies in the decision: compiled once, evaluated on each assessed action (DESIGN 11)."""
