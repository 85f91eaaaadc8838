"""What phrases are made of: words that stand for one another, and how far apart they may stand."""


def words(text: str) -> str:
    """A pattern for any of the words that stand in the text."""
    return f"(?:{'|'.join(text.split())})"


def phrases(text: str) -> str:
    """A pattern for any of the phrases between bars."""
    return f"(?:{text})"


def near(*parts: str, within: int = 40) -> str:
    """A pattern for the parts in this order in one sentence, each a few words from the last.

    The first that fits is taken for good: trying all of them in all combinations would take a hostile text's time.
    """
    first, *rest = parts
    return rf"\b{first}\b" + "".join(rf"(?>[^.]{{0,{within}}}?\b{part}\b)" for part in rest)


def any_of(*patterns: str) -> str:
    """A pattern for any of the patterns."""
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
# What stands for an example leads nowhere.
EMAIL = (
    r"[\w.+-]{1,64}@(?!example\.|test\.|localhost|domain\.|company\.|acme\.|email\.)(?:[\w-]{1,63}\.){1,5}[a-z]{2,24}"
)
URL = (
    r"(?:https?|ftp|wss?)://(?!(?:[\w-]+\.){0,5}example\.(?:com|org|net)\b|localhost\b|127\.0\.0\.1)"
    r"[^\s)>\"'`]{3,300}"
)
