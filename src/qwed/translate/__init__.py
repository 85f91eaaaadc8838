"""Translates natural language into formal input by a configured model. Off by default."""
