"""What is said and kept of an action: without its secrets, sealed, until it is erased."""
