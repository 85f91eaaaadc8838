"""Words by which a program that imports nothing can have a known effect."""

from qwed.guards._python.argument_rules import ACTING_KEYWORDS
from qwed.guards._python.attributes import ATTRIBUTE_CALLS, DANGEROUS_METHODS, METHOD_EFFECTS, REACHING
from qwed.guards._python.calls import BY_NAME, ENVIRONMENT_WORDS, KEYWORD_VIOLATIONS
from qwed.guards._python.library_rules import ASSUMED, BUILTINS, DANGEROUS_BUILTINS, HARMLESS, SHARED_METHODS, words
from qwed.guards._python.name_resolution import REACHABLE_MODULES
from qwed.guards._python.report import rule_of

_EFFECTIVE_BUILTINS = DANGEROUS_BUILTINS.union(
    name for name in BUILTINS if name == "open" or name in BY_NAME or rule_of(name) != HARMLESS
)
_ATTRIBUTES = REACHING | ATTRIBUTE_CALLS | DANGEROUS_METHODS.keys() | METHOD_EFFECTS.keys() | SHARED_METHODS.keys()
_KEYWORDS = KEYWORD_VIOLATIONS.keys() | ENVIRONMENT_WORDS | ACTING_KEYWORDS

RELEVANT_WORDS = (
    _EFFECTIVE_BUILTINS
    | _ATTRIBUTES
    | _KEYWORDS
    | ASSUMED.keys()
    | REACHABLE_MODULES
    | words("open format format_map printer these formula field_transformer fromfile_prefix_chars")
)
