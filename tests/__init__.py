"""The tests; a package, because a library that is installed beside us brings one of the same name."""
