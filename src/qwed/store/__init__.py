"""What is kept: one protocol, and SQLite behind it."""
