"""Implementation of the citation guard: one module for each citation system, and shared parsers."""
