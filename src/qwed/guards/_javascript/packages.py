"""Rules for well-known JavaScript packages; a dot in a package name is written `_`, subpaths are omitted."""

from qwed.guards._javascript.rules import Rule, read_rule_file, words
from qwed.model.data_files import read_mapping, read_table

PACKAGE_RULES: dict[str, Rule] = read_rule_file("packages.txt")

TEMPLATES = words(read_table(__file__, "templates.txt"))
"""Template languages that contain code: harmless if the template is a literal."""

UNDECLARED = read_mapping(__file__, "undeclared.txt")
"""Packages that a page or a snippet uses without importing them."""
