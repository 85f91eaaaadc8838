"""Internals of the prompt-injection guard; import `qwed.guards.prompt_injection` instead."""
