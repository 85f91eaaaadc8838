"""ISO 4217: every currency in use has its decimals, and an unknown one is refused with a suggestion."""

import pytest

from qwed.model.currency import CURRENCIES, WITHOUT_UNIT, CurrencyError, decimals_of

ODD = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}


def test_the_list_has_every_code_once():
    assert len(CURRENCIES) + len(WITHOUT_UNIT) == 178
    assert not WITHOUT_UNIT & set(CURRENCIES)
    assert all(len(code) == 3 and code.isascii() and code.isupper() for code in (*CURRENCIES, *WITHOUT_UNIT))


@pytest.mark.parametrize(("decimals", "codes"), ODD.items())
def test_currencies_without_cents_or_with_finer_ones_are_as_the_standard_says(decimals, codes):
    assert {code for code, its in CURRENCIES.items() if its == decimals} == set(codes.split())
    assert all(decimals_of(code) == decimals for code in codes.split())


@pytest.mark.parametrize(
    "code", ["USD", "EUR", "GBP", "CHF", "CNY", "INR", "MGA", "MRU", "XCG", "ZWG", "XAD", "SLE", "VED"]
)
def test_all_others_have_two_decimals(code):
    assert decimals_of(code) == 2


@pytest.mark.parametrize("code", ["ANG", "BGN", "CUC", "DEM", "HRK", "SLL", "ZWL", "BTC", "US", "USDT", "$", "", "XYZ"])
def test_a_currency_that_is_gone_or_never_was_is_unknown(code):
    with pytest.raises(CurrencyError, match=r"unknown currency.*CURRENCIES"):
        decimals_of(code)


@pytest.mark.parametrize("code", ["usd", "Usd", " USD", "USD\n"])
def test_another_spelling_hears_how_it_is_written(code):
    with pytest.raises(CurrencyError, match="must be written `USD`"):
        decimals_of(code)


@pytest.mark.parametrize("code", [None, 840, 1.0, True, ["USD"], {"code": "USD"}, b"USD"])
def test_what_is_no_text_is_refused(code):
    with pytest.raises(CurrencyError, match="such as `USD`"):
        decimals_of(code)


def test_a_metal_has_no_smallest_unit():
    with pytest.raises(CurrencyError, match="`XAU` has no smallest unit"):
        decimals_of("XAU")


def test_a_long_or_strange_text_is_not_repeated():
    for code in ("SECRET-" * 10, "\u0405GD", "a" * 10**6):
        with pytest.raises(CurrencyError) as refused:
            decimals_of(code)
        assert code not in str(refused.value)
        assert len(str(refused.value)) < 200


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        CURRENCIES["USD"] = 3  # type: ignore[index]
