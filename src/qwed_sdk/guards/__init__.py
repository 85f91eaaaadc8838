"""Guards for use inside a program, without a server."""
