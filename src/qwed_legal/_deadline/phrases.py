"""Phrase tables of the term grammar: leads, units, directions and named days."""

from enum import Enum

from qwed_legal._deadline.numbers import COUNT_WORDS
from qwed_legal._deadline.term import Anchor, Span


class Lead(Enum):
    """Word before a term that tells on which side of the day it lies."""

    PLAIN = "plain"
    WITHIN = "within"
    """Last day after the event; before an event it would be a first day."""
    BY = "by"
    LEAST = "least"
    """Last day before the event; after an event it would be a first day."""


_LEADS = {
    Lead.WITHIN: "within|in|up to|at most|no more than|not more than|not exceeding|for|due in|due within|"
    "payable within|payable in|payment within|payment due in|payment due within|to be paid within|valid for",
    Lead.BY: "no later than|not later than|by no later than|by not later than|by|on or before|on|at|due|due on|due by|"
    "due at|payable by|until|till|through|not after|deadline|deadline is|the deadline is|deadline :|due :|due date :|"
    "expires|expires on|expiring|expiring on|shall expire|will expire|terminates|terminates on|terminating|"
    "shall terminate|will terminate|ends|ends on|ending|shall end|matures|matures on|lapses|lapses on|is due|are due",
    Lead.LEAST: "at least|not less than|no less than|not fewer than|no fewer than|a minimum of|minimum of",
}
LEADS = {phrase: lead for lead, phrases in _LEADS.items() for phrase in phrases.split("|")}
INNER_LEADS = {
    phrase: LEADS[phrase] for phrase in LEADS if phrase.split()[-1] in ("within", "than") or "expire" in phrase
}
INNER_LEADS |= {
    phrase: Lead.BY for phrase in LEADS if phrase.split()[-1].startswith("terminat") or phrase in ("ends", "matures")
}
"""Leads that may occur inside a sentence: `the buyer shall pay within`, `this lease expires`."""

_DATES = (
    "the date that is|the date which is|the date falling|the day that is|the day falling|a date|the date|"
    "close of business on|the close of business on|the end of the day on|the end of business on"
)
DATES = dict.fromkeys(_DATES.split("|"), True)
"""Phrases before or after the lead that change nothing."""
_FRAMES = (
    "a period of|the period of|period of|a term of|the term of|a further|a total of|the|a maximum of|exactly|the next|"
    "an initial term of|the initial term of|initial term of|the initial term is|the term is|initial term :|term :|"
    "the term of this agreement is|p"
)
FRAMES = dict.fromkeys(_FRAMES.split("|"), True)
"""Phrases between the lead and the length that change nothing; `P` begins an ISO 8601 duration."""

CALENDAR = dict.fromkeys(("calendar", "consecutive", "running", "natural", "civil"), True)
BUSINESS = dict.fromkeys(("business", "working", "work", "court", "biz", "bus"), False) | {
    "banking": True,
    "bank": True,
}
"""Words for business days; True if they mean banking days."""

_UNITS = (
    ("day|days|d", Span(days=1)),
    ("week|weeks|wk|wks|w", Span(days=7)),
    ("fortnight|fortnights", Span(days=14)),
    ("month|months|mo|mos|mth|mths|m", Span(months=1)),
    ("quarter|quarters|qtr|qtrs", Span(months=3)),
    ("year|years|yr|yrs|y", Span(months=12)),
    ("decade|decades", Span(months=120)),
)
UNITS = {word: (size, span) for size, (words, span) in enumerate(_UNITS, 1) for word in words.split("|")}
"""Units with their rank from 1, the smallest; a business day has rank 0."""
DAYS = frozenset({"day", "days"})
CALENDAR_UNITS = frozenset({"day", "days", "week", "weeks", "month", "months"})
"""Units that `calendar` may precede; a calendar year or quarter would begin with January."""

NOUNS = frozenset(("period", "periods", "time", "term", "terms", "deadline", "window", "limit", "notice", "extension"))
"""Nouns behind the length that change nothing, with words before them: `cooling off period`, `written notice`."""
ADDED = dict.fromkeys(("in total", "at the latest", "maximum", "at most", "max"), True)
MAX_WORDS_BEFORE_NOUN = 4

_AFTER = (
    "after|from|of|following|since|post|from and after|as from|counted from|counting from|calculated from|"
    "running from|measured from|computed from|reckoned from|from but excluding|after but excluding|"
    "starting after|beginning after|commencing after|starting the day after|beginning the day after|"
    "commencing the day after|starting on the day after|beginning on the day after|commencing on the day after"
)
AFTER = dict.fromkeys(_AFTER.split("|"), False) | dict.fromkeys(
    ("from and including", "beginning on and including", "starting on and including"), True
)
"""Phrases for `after`; True if the day of the event is counted."""
_BEFORE = "before|prior to|preceding|in advance of|ahead of|previous to|back from|counted back from|counting back from|"
BEFORE = dict.fromkeys(_BEFORE.split("|"), False)
LINKS = frozenset(("after", "following", "before", "preceding", "to"))
"""Last words of a phrase that an event must follow, if anything does."""
LATER = dict.fromkeys(("later", "thereafter", "hence", "afterwards", "afterward", "after that", "from then"), True)
EARLIER = dict.fromkeys(("earlier", "prior", "beforehand", "in advance", "ahead", "before that"), True)


def _periods() -> dict[str, tuple[int, int, bool]]:
    """Return for each name of a month, quarter or year: its months, how far ahead it is, and whether that is open."""
    by_name: dict[str, tuple[int, int, bool]] = {}
    for unit, months in (("month", 1), ("quarter", 3), ("year", 12)):
        for name in (unit, f"calendar {unit}"):
            by_name |= dict.fromkeys((name, f"the {name}"), (months, 0, True))
            now = (f"this {name}", f"the current {name}", f"current {name}", f"the same {name}", f"that {name}")
            by_name |= dict.fromkeys(now, (months, 0, False))
            following = (f"next {name}", f"the next {name}", f"the following {name}", f"following {name}")
            by_name |= dict.fromkeys(
                (*following, f"the subsequent {name}", f"the succeeding {name}"), (months, 1, False)
            )
    return by_name


PERIODS = _periods()
_EDGES = {"end of": -1, "close of": -1, "last day of": -1, "final day of": -1, "first day of": 1, "start of": 1}
_EDGES |= {"beginning of": 1, "last calendar day of": -1, "first calendar day of": 1}
EDGES = {
    **{phrase: (day, False) for phrase, day in _EDGES.items()},
    **{
        f"{which} {kind} day of": (day, True)
        for kind in ("business", "working")
        for which, day in (("last", -1), ("final", -1), ("first", 1))
    },
}
"""Day of the period, and whether business days are counted."""
_ENDS = {1: "eom|month end|end month", 3: "eoq|quarter end|end quarter", 12: "eoy|year end|end year"}
ENDS = {phrase: Anchor(months, 0, -1) for months, phrases in _ENDS.items() for phrase in phrases.split("|")}
SAME = dict.fromkeys(("of", "in which", "containing", "during which"), True)
"""Words behind an open period that select the period of the event."""
AHEAD = dict.fromkeys(("following", "after", "next following"), True)
"""Words behind an open period that select the following one."""


def _next_days() -> dict[str, tuple[Span, bool]]:
    """Return the phrases for the next or previous day, each with its span and whether it counts back."""
    by_phrase: dict[str, tuple[Span, bool]] = {}
    kinds = {"": Span(days=1), "calendar ": Span(days=1)}
    kinds |= {f"{word} ": business_days(1, banking) for word, banking in BUSINESS.items()}
    for kind, span in kinds.items():
        onward = (f"next {kind}day", f"following {kind}day", f"{kind}day after", f"{kind}day following")
        by_phrase |= dict.fromkeys(onward, (span, False))
        by_phrase |= dict.fromkeys((f"next {kind}day after", f"next {kind}day following"), (span, False))
        back = (f"previous {kind}day", f"preceding {kind}day", f"{kind}day before", f"{kind}day preceding")
        by_phrase |= dict.fromkeys((*back, f"{kind}day prior to"), (span, True))
    return by_phrase | {"same day": (Span(), False)}


def business_days(count: int, banking: bool) -> Span:
    """Return a span of business days or banking days."""
    return Span(business=count, banking=banking, counts_business=True)


NEXT_DAYS = _next_days()

_VAGUE = (
    "promptly immediately forthwith asap soon sooner reasonable reasonably timely shortly approximately about around "
    "roughly circa nearly almost several few some couple many forever indefinitely perpetual perpetually hours hour "
    "minutes minute clear trading fiscal half"
)
VAGUE = frozenset(_VAGUE.split())
"""Words that a calendar cannot resolve."""

_NAMES = (
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december easter christmas weekend weekends weekday weekdays holiday holidays"
)
_TURNS = (
    "middle next following previous preceding prior before after later earlier not never no "
    "unless except excluding including inclusive exclusive whichever then plus minus until till but and than least "
    "most more less tomorrow yesterday within net calendar business working banking consecutive midnight noon"
)
NOT_IN_EVENT = frozenset([*_NAMES.split(), *_TURNS.split(), *UNITS, *COUNT_WORDS]) - {*"dwmy", "a", "an"}
"""Words that cannot occur in an event on the signing date."""
DANGLING = frozenset(("of", "to", "on", "in", "at", "from", "the", "a", "an", "for", "by", "with", "which", "that"))
"""Words with which no event ends."""
_STARTS = (
    "or if where when whenever should rolled rolling roll rolls adjusted moved extended postponed deferred modified "
    "inclusive including excluding exclusive counting not and but , ; ( )"
)
CLAUSE_STARTS = frozenset(_STARTS.split())
"""Words that end an event."""
