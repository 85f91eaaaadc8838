"""The court in parentheses: is there one of that name, and does the reporter print its cases?"""

import re
from functools import cache

from qwed_legal._citation.states import state_names, states
from qwed_legal._citation.text import key

_SUPREME = frozenset({"US", "USSupremeCourt", "USSCt", "UnitedStatesSupremeCourt", "SCt"})
_CIRCUIT = re.compile(
    r"CA(?:[1-9]|10|11|DC|Fed|F)|(?:(?:[1-9]|10|11)(?:st|nd|d|rd|th)|First|Second|Third|Fourth|Fifth|Sixth|Seventh|"
    r"Eighth|Ninth|Tenth|Eleventh|DC|Fed|Federal)Cir(?:cuit)?"
)
_ORDINAL = {"1": "st", "2": "nd|d", "3": "rd|d"}
_DISTRICT = re.compile(r"(?:(?P<part>[NSEWMC]?)D)(?P<state>[A-Z][A-Za-z']*)")
_ALONE = re.compile(
    r"(?:App(?:ellate)?Div)?,?(?:1st|2d|2nd|3d|3rd|4th|First|Second|Third|Fourth)Dep(?:'t|t|"
    r"artment)|[1-6](?:st|d|nd|rd|th)DCA"
)
"""Departments of New York and districts of Florida, as their own courts name them."""
_BEFORE = re.compile(r"(?:Bankr|BAP|CC|CCA|Cir Ct|USDC)(?=[A-Z0-9])")
_SPECIAL = """
FedCl ClCt CtCl CtIntlTrade CtInt'lTrade CIT CustCt CCPA TC USTC BTA JPML VetApp USVetApp CtVetApp CAAF CMA ACtCrimApp
AFCtCrimApp ArmyCtCrimApp NMCtCrimApp N-MCtCrimApp CGCtCrimApp BIA AG TTAB PTAB BPAI ITC TempEmerCtApp EmerCtApp FISACt
FISCR ComCt SpecCtRRRA
"""
"""Federal courts and boards beside the districts and the circuits."""
_WORDS = """
App Ct Cts Sup Super Superior Supreme Court Dist Div Dept Dep't Ch Cir Civ Crim Commw Fam Prob Surr Cnty County Co Mun
Term Spec Gen Sess Com Pl CP Tax Land Magis City Eq Err Errors Orphans' Juv Oyer & Terminer Workers' Comp DCA Jud Appeal
Appeals of Criminal Civil Chancery Appellate Division District Department Circuit 1st 2d 2nd 3d 3rd 4th 5th 6th 7th 8th
9th 10th 11th 12th 13th 14th First Second Third Fourth Fifth Nat'l Water Env't Dom Rel Hous Small Claims Special Terr Cl
Bus Law Mag Justice Police Traffic High Chancellor Admlty Lab Indus Bd Orph banc ED WD SD E W S D
"""
"""What the name of a state's court is made of."""
_DISTRICTS = (
    "al:NMS ar:EW ca:NECS fl:NMS ga:NMS il:NCSE in:NS ia:NS ky:EW la:EMW mi:EW ms:NS mo:EW ny:NSEW nc:EMW oh:NS ok:NEW "
    "pa:EMW sc:EW tn:EMW tx:NSEW va:EW wa:EW wv:NS wi:EW"
)
"""28 U.S.C. ss. 81-131, and two districts that there were."""


def place_of(court: str) -> str | None:
    """`us` of a federal court of appeals, `us.d` of a trial court, `us.s` of the Supreme Court, `us:ca` of a state."""
    flat = key(court)
    if flat in _SUPREME:
        return "us.s"
    bare = _BEFORE.sub("", flat)
    if _CIRCUIT.fullmatch(bare) and _ordinal(bare):
        return "us.a" if bare == flat or flat.startswith(("CCA", "BAP")) else "us.d"
    if flat in _SPECIAL.split():
        return "us.o"
    if _ALONE.fullmatch(flat):
        return "us:ny" if "Dep" in flat else "us:fl"
    return _district(bare) or _of_state(court) or _listed(flat) or _nameless(court)


def _nameless(court: str) -> str | None:
    """`Sup. Ct.` beside a reporter of one state; which one, the reporter says."""
    return "?" if all(_word(each) for each in court.split()) else None


def _ordinal(circuit: str) -> bool:
    number = re.match(r"([0-9]+)([a-z]+)", circuit)
    return number is None or number[2] in _ORDINAL.get(number[1], "th").split("|")


def _district(flat: str) -> str | None:
    found = _DISTRICT.fullmatch(flat)
    if found is None:
        return None
    state = states().get(found["state"], "") or ("cz" if found["state"] in ("CZ", "Orleans") else "")
    if not state or found["part"] not in ("", *_districts().get(state, "")):
        return None
    return "us.d"


@cache
def _districts() -> dict[str, str]:
    return {state: parts for state, _, parts in (each.partition(":") for each in _DISTRICTS.split())}


def _of_state(court: str) -> str | None:
    """The state that the name begins with, where every word after it is a word of courts."""
    name = re.sub(r"-[A-Z][A-Za-z .]{1,40}$", "", re.sub(r"\s*\[[^\[\]]{1,30}\]$", "", court))
    for state in state_names():
        code = states()[state.replace(" ", "").replace(".", "")]
        short = key(state)
        flat = key(name)
        if flat == short:
            return f"us:{code}"
        rest = _after(name, state)
        if rest is not None and all(_word(each) for each in rest.replace(",", " ").split()):
            return f"us:{code}"
    return None


def _after(name: str, state: str) -> str | None:
    for form in (state, state.replace(" ", "")):
        if name.startswith(form):
            return re.sub(r"\.(?=[A-Z0-9])", ". ", name[len(form) :])
    return None


def _word(each: str) -> bool:
    return each.rstrip(",").replace(".", "") in _WORDS.split() or each == "-"


@cache
def _court_names() -> dict[str, str]:
    try:
        from courts_db import courts
    except ImportError as missing:
        raise ImportError("citations need `courts-db`: install `qwed[legal]`") from missing
    found: dict[str, str] = {}
    for row in courts:
        name = row.get("citation_string")
        if name:
            found.setdefault(key(name.replace("\u2019", "'")), _system(row))
    return found


def _system(row: dict[str, str]) -> str:
    if row.get("system") == "federal":
        return "us.o"
    code = states().get((row.get("location") or "").replace(" ", "").replace(".", ""))
    return f"us:{code}" if code else "us:tribal" if row.get("system") == "tribal" else "?"


def _listed(flat: str) -> str | None:
    return _court_names().get(flat)


_APPEALS = ("F.4th", "F.3d", "F. App'x")
_TRIALS = ("F. Supp. 2d", "F. Supp. 3d", "F. Supp.", "F.R.D.")
_HIGHEST = ("U.S.", "S. Ct.", "L. Ed.", "L. Ed. 2d")
_ONE_STATE = 3
"""Reporters with more states than these print whatever is worth it."""


def mismatch(edition: str, places: frozenset[str] | None, court: str) -> str | None:
    """Why the reporter cannot have printed a case of that court; None where it can, or where nobody knows."""
    place = place_of(court)
    if place is None:
        return f"`{court}` is no court that is known (courts-db; The Bluebook, tables T1 and T7)"
    if edition in _HIGHEST:
        return None if place == "us.s" else f"`{edition}` prints the Supreme Court of the United States, not `{court}`"
    if edition in _APPEALS and place not in ("us.a", "us.o"):
        return f"`{edition}` prints federal courts of appeals, not `{court}`"
    if edition in _TRIALS and place in ("us.a", "us.s") and "App. Div." not in court:
        return f"`{edition}` prints federal trial courts, not `{court}`"
    return _elsewhere(edition, places, court, place)


def _elsewhere(edition: str, places: frozenset[str] | None, court: str, place: str) -> str | None:
    if not places or place == "?":
        return None
    if place.startswith("us:") and place not in places and not (place == "us:dc" and "us" in places):
        return f"`{edition}` does not print courts of that state: `{court}`"
    if place.startswith("us.") and "us" not in places:
        return f"`{edition}` prints courts of a state, not `{court}`"
    return None
