"""Tests, as a package: an installed library has a top-level package of the same name."""
