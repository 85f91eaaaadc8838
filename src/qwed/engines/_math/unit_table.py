"""Names of units and their exact values in base units."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import pint

from qwed.model.data_files import read_mapping


class Unit(NamedTuple):
    """Number of base units and dimension of a unit; angles are counted in half turns, that is in pi."""

    factor: Fraction
    dimension: Mapping[str, Fraction]
    half_turns: bool = False


_SI = "m g s A K mol cd N J W V C F T H Hz Pa L l Wb S lm lx Bq Gy eV cal bar B bit byte ohm Ohm sec t"
_PREFIXES = ("", "n", "u", "m", "c", "d", "h", "k", "M", "G", "T", "p", "P")
_WORDS = (
    "meter metre kilometer kilometre centimeter centimetre millimeter millimetre micrometer nanometer inch foot feet "
    "yard mile nautical_mile gram kilogram milligram microgram tonne pound ounce stone second minute hour day week "
    "millisecond microsecond nanosecond liter litre milliliter millilitre gallon quart cup tablespoon teaspoon joule "
    "kilojoule watt kilowatt megawatt newton pascal kilopascal volt ampere coulomb farad hertz kilohertz megahertz "
    "gigahertz calorie kilocalorie kelvin mole hectare atmosphere knot lightyear parsec angstrom horsepower "
    "bit byte kilobyte megabyte gigabyte terabyte kilobit megabit gigabit pint fluid_ounce"
)
_SYMBOLS = (
    "ft yd mi lb oz gal qt tbsp tsp mph kph psi atm mmHg torr Btu BTU hp kn ha min h hr day week Wh kWh MWh GWh mAh Ah "
    "KiB MiB GiB TiB au ly pc eV keV MeV GeV inch kcal nmi bps kbps Mbps Gbps Mb Gb Tb"
)
_OTHER_NAMES = read_mapping(__file__, "unit_names.txt")
_DIMENSIONS = {
    "[length]": "length",
    "[mass]": "mass",
    "[time]": "time",
    "[current]": "current",
    "[temperature]": "temperature",
    "[substance]": "substance",
    "[luminosity]": "luminosity",
    "[information]": "information",
}
_CALENDAR = {"calendar": Fraction(1)}
_OWN_UNITS = {
    "acre": Unit(Fraction("4046.8564224"), {"length": Fraction(2)}),
    "acres": Unit(Fraction("4046.8564224"), {"length": Fraction(2)}),
    "rad": Unit(Fraction(1), {}),
    "radian": Unit(Fraction(1), {}),
    "radians": Unit(Fraction(1), {}),
    **dict.fromkeys(("deg", "degree", "degrees"), Unit(Fraction(1, 180), {}, half_turns=True)),
    # Months and years have no fixed length in days, so they convert only to each other.
    **dict.fromkeys(("month", "months"), Unit(Fraction(1), _CALENDAR)),
    **dict.fromkeys(("year", "years", "yr"), Unit(Fraction(12), _CALENDAR)),
    "mpg": Unit(Fraction("1609.344") / Fraction("0.003785411784"), {"length": Fraction(-2)}),
    "dozen": Unit(Fraction(12), {}),
}


@cache
def _unit_names() -> frozenset[str]:
    words = {form for word in _WORDS.split() for form in (word, word + "s", word + "es")}
    symbols = {prefix + symbol for symbol in _SI.split() for prefix in _PREFIXES}
    ours = {"min", "mins", "secs", "hrs", "lbs", "inches", "days", "weeks", "miles", "yds", "in"}
    return frozenset(words | symbols | set(_SYMBOLS.split()) | ours) - _NOT_UNITS


_NOT_UNITS = frozenset(
    {"d", "h", "p", "u", "P", "dl", "at", "nt", "mt", "ct", "ht", "dt", "hL", "pt", "cd", "Pt", "ut", "dg"}
) - {"h"}


@cache
def _registry() -> Any:
    return pint.UnitRegistry(non_int_type=Fraction)


@cache
def unit_of(name: str) -> Unit | None:
    """Return the unit of that name, or None."""
    if name in _OWN_UNITS:
        return _OWN_UNITS[name]
    if name not in _unit_names():
        return None
    try:
        factor, base = _registry().get_base_units(_OTHER_NAMES.get(name, name), check_nonmult=True)
        powers = dict(base.dimensionality)
    except (pint.PintError, AttributeError, AssertionError, ArithmeticError, TypeError, ValueError, LookupError):
        return None
    if not set(powers) <= set(_DIMENSIONS):
        return None
    dimension = {_DIMENSIONS[key]: Fraction(power) for key, power in powers.items()}
    if dict(base._units).keys() & {"bit"}:
        dimension["information"] = Fraction(dict(base._units)["bit"])
    return Unit(Fraction(factor), dimension)
