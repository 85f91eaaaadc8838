"""ISO 3166-1 countries, compared with another table."""

import pycountry
import pytest

from qwed.packs.countries import COUNTRIES, country_of, find_country
from qwed.packs.result import UnreadableInputError


def test_every_code_of_the_standard_is_there_and_no_other() -> None:
    assert {row.code: row.code3 for row in COUNTRIES.values()} == {c.alpha_2: c.alpha_3 for c in pycountry.countries}


def test_a_country_goes_by_its_codes_and_its_name() -> None:
    for row in COUNTRIES.values():
        assert (
            find_country(row.code) == find_country(row.code3.lower()) == find_country(f"  {row.name.upper()} ") == row
        )


def test_names_are_not_shared() -> None:
    assert len({row.name for row in COUNTRIES.values()}) == len(COUNTRIES)


@pytest.mark.parametrize(("name", "code"), [("UK", "GB"), ("usa", "US"), ("The  Netherlands", "NL"), ("Korea", "KR")])
def test_usual_names_are_known(name: str, code: str) -> None:
    assert country_of(name).code == code


@pytest.mark.parametrize("name", ["Atlantis", "", "XX", None, 5, "U" * 100_000])
def test_an_unknown_country_is_told_the_known_ones(name: object) -> None:
    with pytest.raises(UnreadableInputError, match="unknown country") as wrong:
        country_of(name)
    assert len(wrong.value.known) == 249
    assert len(str(wrong.value)) < 300
