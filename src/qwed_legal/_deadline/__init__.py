"""Implementation of the deadline guard: term grammar, holiday calendars and date arithmetic."""
