"""Messages between agents: who sends, what is held against it, what is kept of it."""
