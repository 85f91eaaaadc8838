"""Common words of tool names; two of them one letter apart are two words, not a typo."""

from qwed.model.data_files import read_table

_TEXT = read_table(__file__, "words.txt")
WORDS = frozenset(_TEXT.split())
