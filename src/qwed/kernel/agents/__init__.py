"""An agent from its registration on: standing, trust, what it did, and what became of it."""
