"""Implementation of the payment message guard: parsers, structure, and rules between elements."""
