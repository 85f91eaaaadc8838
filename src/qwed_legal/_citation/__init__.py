"""The parts of the citation guard: one module for each system of citation, and what they share."""
