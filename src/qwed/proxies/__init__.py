"""What every proxy needs that stands before somebody else's program: whom it asks, as whom, and where it keeps it."""
