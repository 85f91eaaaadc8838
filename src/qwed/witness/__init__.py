"""Heads of the log, published where a copy of them lives on."""
