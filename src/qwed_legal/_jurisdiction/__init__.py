"""Implementation of the jurisdiction guard: places, choice of law, conventions and their members."""
