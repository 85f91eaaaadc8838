"""Parts of the guard for payment messages: reading, structure, and the rules between elements."""
