"""Guards a program embeds: each judges one kind of input by itself, without a server."""
