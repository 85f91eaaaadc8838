"""Pure functions from text to findings; each guard is imported by its own name."""
