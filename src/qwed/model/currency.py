"""ISO 4217 currency codes in use and the number of decimals of each (list one of 2026-01-01)."""

from collections.abc import Mapping
from types import MappingProxyType

_BY_DECIMALS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW "
        "CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF "
        "IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK "
        "MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP "
        "SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG "
        "YER ZAR ZMW ZWG"
    ),
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}

CURRENCIES: Mapping[str, int] = MappingProxyType(
    {code: decimals for decimals, codes in _BY_DECIMALS.items() for code in codes.split()}
)
"""Decimals by code, funds included: 2 for `USD`, none for `JPY`, 3 for `KWD`."""

WITHOUT_UNIT = frozenset(("XAG", "XAU", "XBA", "XBB", "XBC", "XBD", "XDR", "XPD", "XPT", "XSU", "XTS", "XUA", "XXX"))
"""Listed codes that have no smallest unit: metals, units of account, test codes and "no currency"."""


class CurrencyError(ValueError):
    """The code is not a currency with a smallest unit."""


def decimals_of(code: object) -> int:
    """Return the number of decimals of amounts in this currency; raise CurrencyError with what to write instead."""
    if isinstance(code, str) and code in CURRENCIES:
        return CURRENCIES[code]
    raise CurrencyError(_currency_error(code))


def _currency_error(code: object) -> str:
    if not isinstance(code, str):
        return "must be a code of ISO 4217 such as `USD`"
    if code in WITHOUT_UNIT:
        return f"`{code}` has no smallest unit, write the code of a currency such as `USD`"
    normalized = code.strip().upper()
    if normalized in CURRENCIES:
        return f"must be written `{normalized}`"
    quoted = f" `{code}`" if code.isascii() and code.isalpha() and len(code) <= 8 else ""
    return f"unknown currency{quoted}, `qwed.model.currency.CURRENCIES` and docs/a2a-guards.md list the known ones"
