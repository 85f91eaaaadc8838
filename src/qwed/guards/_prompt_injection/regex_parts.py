"""Building blocks of the phrase patterns: synonyms, and the distance between words."""


def words(text: str) -> str:
    """Return a pattern that matches any of the words in the text."""
    return f"(?:{'|'.join(text.split())})"


def phrases(text: str) -> str:
    """Return a pattern that matches any of the phrases separated by bars."""
    return f"(?:{text})"


def near(*parts: str, within: int = 40) -> str:
    """Return a pattern for the parts in this order in one sentence, each at most `within` characters after the previous
    one.

    The groups are atomic: backtracking through all combinations would let hostile text take too much time.
    """
    first, *rest = parts
    return rf"\b{first}\b" + "".join(rf"(?>[^.]{{0,{within}}}?\b{part}\b)" for part in rest)


def any_of(*patterns: str) -> str:
    """Return a pattern that matches any of the patterns."""
    return f"(?:{'|'.join(f'(?:{pattern})' for pattern in patterns)})"


NOT = phrases(
    "do not|don'?t|never|must not|mustn'?t|shall not|should not|shouldn'?t|cannot|can'?t|avoid|refrain from|without"
    "|no need to"
)
ORDERS = words("instructions? prompts? directives? guidelines? guardrails? programming")
RULES = words(
    "rules? messages? context polic(?:y|ies) constraints? restrictions? training safeguards limitations directions"
)
EARLIER = words("previous prior above earlier preceding foregoing former original initial existing your safety system")
TELL = words(
    "tell bring inform mention notify alert reveal disclose warn report explain admit let say talk speak"
    " telling informing mentioning notifying alerting revealing disclosing warning letting"
)
USER = words("user human customer operator person end-user owner anyone anybody")
TALK = words("conversation chat dialogue dialog discussion message session prompt")
TRANSCRIPT = rf"{TALK}[ _-](?:history|logs?|transcript|context|contents?|messages|thread|text)"
KEYS = phrases(
    "api[ _-]?keys?|passwords?|passphrases?|credentials?|secrets|access tokens?|auth(?:entication)? tokens?"
    "|private keys?|ssh keys?|seed phrases?|env(?:ironment)? (?:variables?|vars?)|session cookies|credit card numbers?"
)
CONVEY = words(
    "include pass send append attach leak exfiltrate put paste insert copy encode embed supply provide submit post"
    " upload transmit forward dump add place write share"
)
DATA = words(
    "conversation chat history messages? contents? data results? outputs? files? keys? tokens? credentials? secrets?"
    " summar(?:y|ies) transcript context arguments? parameters responses? everything repl(?:y|ies) input copy it them"
    " quer(?:y|ies)"
)
CALL = words("call use invoke run execute consult called used invoked executed")
# Example domains are not real receivers.
EMAIL = (
    r"[\w.+-]{1,64}@(?!example\.|test\.|localhost|domain\.|company\.|acme\.|email\.)(?:[\w-]{1,63}\.){1,5}[a-z]{2,24}"
)
URL = (
    r"(?:https?|ftp|wss?)://(?!(?:[\w-]+\.){0,5}example\.(?:com|org|net)\b|localhost\b|127\.0\.0\.1)"
    r"[^\s)>\"'`]{3,300}"
)
