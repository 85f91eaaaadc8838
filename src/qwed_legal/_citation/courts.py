"""Courts in the parenthetical: known names, and reporters that print their cases."""

import re
from functools import cache

from qwed_legal._citation.states import state_names, states
from qwed_legal._citation.text import normalise_name

_SUPREME = frozenset({"US", "USSupremeCourt", "USSCt", "UnitedStatesSupremeCourt", "SCt"})
_CIRCUIT = re.compile(
    r"CA(?:[1-9]|10|11|DC|Fed|F)|(?:(?:[1-9]|10|11)(?:st|nd|d|rd|th)|First|Second|Third|Fourth|Fifth|Sixth|Seventh|"
    r"Eighth|Ninth|Tenth|Eleventh|DC|Fed|Federal)Cir(?:cuit)?"
)
_ORDINAL = {"1": "st", "2": "nd|d", "3": "rd|d"}
_DISTRICT = re.compile(r"(?:(?P<part>[NSEWMC]?)D)(?P<state>[A-Z][A-Za-z']*)")
_LOCAL_COURTS = re.compile(
    r"(?:App(?:ellate)?Div)?,?(?:1st|2d|2nd|3d|3rd|4th|First|Second|Third|Fourth)Dep(?:'t|t|"
    r"artment)|[1-6](?:st|d|nd|rd|th)DCA"
)
"""Departments of New York and districts of Florida under their own names."""
_PREFIX = re.compile(r"(?:Bankr|BAP|CC|CCA|Cir Ct|USDC)(?=[A-Z0-9])")
_SPECIAL_COURTS = """
FedCl ClCt CtCl CtIntlTrade CtInt'lTrade CIT CustCt CCPA TC USTC BTA JPML VetApp USVetApp CtVetApp CAAF CMA ACtCrimApp
AFCtCrimApp ArmyCtCrimApp NMCtCrimApp N-MCtCrimApp CGCtCrimApp BIA AG TTAB PTAB BPAI ITC TempEmerCtApp EmerCtApp FISACt
FISCR ComCt SpecCtRRRA
"""
"""Federal courts and boards other than districts and circuits."""
_COURT_WORDS = """
App Ct Cts Sup Super Superior Supreme Court Dist Div Dept Dep't Ch Cir Civ Crim Commw Fam Prob Surr Cnty County Co Mun
Term Spec Gen Sess Com Pl CP Tax Land Magis City Eq Err Errors Orphans' Juv Oyer & Terminer Workers' Comp DCA Jud Appeal
Appeals of Criminal Civil Chancery Appellate Division District Department Circuit 1st 2d 2nd 3d 3rd 4th 5th 6th 7th 8th
9th 10th 11th 12th 13th 14th First Second Third Fourth Fifth Nat'l Water Env't Dom Rel Hous Small Claims Special Terr Cl
Bus Law Mag Justice Police Traffic High Chancellor Admlty Lab Indus Bd Orph banc ED WD SD E W S D
"""
"""Words in the name of a state court."""
_DISTRICTS = (
    "al:NMS ar:EW ca:NECS fl:NMS ga:NMS il:NCSE in:NS ia:NS ky:EW la:EMW mi:EW ms:NS mo:EW ny:NSEW nc:EMW oh:NS ok:NEW "
    "pa:EMW sc:EW tn:EMW tx:NSEW va:EW wa:EW wv:NS wi:EW"
)
"""Federal districts by state (28 U.S.C. ss. 81-131), and two former districts."""


def classify_court(court: str) -> str | None:
    """Return `us.a` for a federal court of appeals, `us.d` for a trial court, `us.s` for the Supreme Court, `us:ca` for
    a state."""
    flat = normalise_name(court)
    if flat in _SUPREME:
        return "us.s"
    bare = _PREFIX.sub("", flat)
    if _CIRCUIT.fullmatch(bare) and _has_valid_ordinal(bare):
        return "us.a" if bare == flat or flat.startswith(("CCA", "BAP")) else "us.d"
    if flat in _SPECIAL_COURTS.split():
        return "us.o"
    if _LOCAL_COURTS.fullmatch(flat):
        return "us:ny" if "Dep" in flat else "us:fl"
    return _district_court(bare) or _state_court(court) or _look_up_court(flat) or _generic_court(court)


def _generic_court(court: str) -> str | None:
    """Return `?` for a name without a state, such as `Sup. Ct.`; the reporter determines the state."""
    return "?" if all(_is_court_word(word) for word in court.split()) else None


def _has_valid_ordinal(circuit: str) -> bool:
    number = re.match(r"([0-9]+)([a-z]+)", circuit)
    return number is None or number[2] in _ORDINAL.get(number[1], "th").split("|")


def _district_court(flat: str) -> str | None:
    match = _DISTRICT.fullmatch(flat)
    if match is None:
        return None
    state = states().get(match["state"], "") or ("cz" if match["state"] in ("CZ", "Orleans") else "")
    if not state or match["part"] not in ("", *_districts().get(state, "")):
        return None
    return "us.d"


@cache
def _districts() -> dict[str, str]:
    return {state: parts for state, _, parts in (entry.partition(":") for entry in _DISTRICTS.split())}


def _state_court(court: str) -> str | None:
    """Return the state at the start of the name if every word after it is a court word."""
    name = re.sub(r"-[A-Z][A-Za-z .]{1,40}$", "", re.sub(r"\s*\[[^\[\]]{1,30}\]$", "", court))
    for state in state_names():
        code = states()[state.replace(" ", "").replace(".", "")]
        short = normalise_name(state)
        flat = normalise_name(name)
        if flat == short:
            return f"us:{code}"
        rest = _text_after(name, state)
        if rest is not None and all(_is_court_word(word) for word in rest.replace(",", " ").split()):
            return f"us:{code}"
    return None


def _text_after(name: str, state: str) -> str | None:
    for form in (state, state.replace(" ", "")):
        if name.startswith(form):
            return re.sub(r"\.(?=[A-Z0-9])", ". ", name[len(form) :])
    return None


def _is_court_word(word: str) -> bool:
    return word.rstrip(",").replace(".", "") in _COURT_WORDS.split() or word == "-"


@cache
def _court_names() -> dict[str, str]:
    try:
        from courts_db import courts
    except ImportError as error:
        raise ImportError("citations need `courts-db`: install `qwed[legal]`") from error
    names: dict[str, str] = {}
    for row in courts:
        name = row.get("citation_string")
        if name:
            names.setdefault(normalise_name(name.replace("\u2019", "'")), _row_system(row))
    return names


def _row_system(row: dict[str, str]) -> str:
    if row.get("system") == "federal":
        return "us.o"
    code = states().get((row.get("location") or "").replace(" ", "").replace(".", ""))
    return f"us:{code}" if code else "us:tribal" if row.get("system") == "tribal" else "?"


def _look_up_court(flat: str) -> str | None:
    return _court_names().get(flat)


_APPEALS = ("F.4th", "F.3d", "F. App'x")
_TRIALS = ("F. Supp. 2d", "F. Supp. 3d", "F. Supp.", "F.R.D.")
_HIGHEST = ("U.S.", "S. Ct.", "L. Ed.", "L. Ed. 2d")


def court_mismatch(edition: str, places: frozenset[str] | None, court: str) -> str | None:
    """Return why the reporter cannot have printed a case of that court, or None if it can or nothing is known."""
    place = classify_court(court)
    if place is None:
        return f"`{court}` is not a known court (courts-db; The Bluebook, tables T1 and T7)"
    if edition in _HIGHEST:
        return None if place == "us.s" else f"`{edition}` prints the Supreme Court of the United States, not `{court}`"
    if edition in _APPEALS and place not in ("us.a", "us.o"):
        return f"`{edition}` prints federal courts of appeals, not `{court}`"
    if edition in _TRIALS and place in ("us.a", "us.s") and "App. Div." not in court:
        return f"`{edition}` prints federal trial courts, not `{court}`"
    return _state_mismatch(edition, places, court, place)


def _state_mismatch(edition: str, places: frozenset[str] | None, court: str, place: str) -> str | None:
    if not places or place == "?":
        return None
    if place.startswith("us:") and place not in places and not (place == "us:dc" and "us" in places):
        return f"`{edition}` does not print courts of that state: `{court}`"
    if place.startswith("us.") and "us" not in places:
        return f"`{edition}` prints courts of a state, not `{court}`"
    return None
