"""Members of conventions, and the dates from which they are bound.

A date is the day of entry into force for the state. If the table has only a year, days within that year are undecided.
"""

from datetime import date
from functools import cache
from typing import NamedTuple

from qwed_legal._jurisdiction.places import EUROPEAN_UNION


class Convention(NamedTuple):
    """Convention and its members."""

    key: str
    name: str
    source: str
    as_of: date
    """Date of the table; later members are not in it."""
    members: dict[str, tuple[date, date]]
    """By country: the first day on which it may be bound, and the first day on which it certainly is."""
    signed: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    """Members whose first day is not certain."""
    special: frozenset[str] = frozenset()
    """Members with a relevant declaration."""


_CISG = """
AL 2010-06-01 AR 1988-01-01 AM 2010-01-01 AU 1989-04-01 AT 1989-01-01 AZ 2017-06-01 BH 2014-10-01 BY 1990-11-01
BE 1997-11-01 BJ 2012-08-01 BA 1992-03-06 BR 2014-04-01 BG 1991-08-01 BI 1999-10-01 CM 2018-11-01 CA 1992-05-01
CL 1991-03-01 CN 1988-01-01 CO 2002-08-01 CG 2015-07-01 CR 2018-08-01 HR 1991-10-08 CU 1995-12-01 CY 2006-04-01
CZ 1993-01-01 KP 2020-04-01 DK 1990-03-01 DO 2011-07-01 EC 1993-02-01 EG 1988-01-01 SV 2007-12-01 EE 1994-10-01
FJ 2018-07-01 FI 1989-01-01 FR 1988-01-01 GA 2006-01-01 GE 1995-09-01 DE 1991-01-01 GR 1999-02-01 GT 2020-01-01
GN 1992-02-01 GY 2015-10-01 HN 2003-11-01 HK 2022-12-01 HU 1988-01-01 IS 2002-06-01 IQ 1991-04-01 IL 2003-02-01
IT 1988-01-01 JP 2009-08-01 KG 2000-06-01 LA 2020-10-01 LV 1998-08-01 LB 2009-12-01 LS 1988-01-01 LR 2006-10-01
LI 2020-05-01 LT 1996-02-01 LU 1998-02-01 MG 2015-10-01 MR 2000-09-01 MX 1989-01-01 MD 1995-11-01 MN 1999-01-01
ME 2006-06-03 NL 1992-01-01 NZ 1995-10-01 MK 1991-11-17 NO 1989-08-01 PS 2019-01-01 PY 2007-02-01 PE 2000-04-01
PL 1996-06-01 PT 2021-10-01 KR 2005-03-01 RO 1992-06-01 RU 1991-09-01 RW 2024-10-01 VC 2001-10-01 SM 2013-03-01
SA 2024-09-01 RS 1992-04-27 SG 1996-03-01 SK 1993-01-01 SI 1991-06-25 ES 1991-08-01 SE 1989-01-01 CH 1991-03-01
SY 1988-01-01 TR 2011-08-01 TM 2023-06-01 UG 1993-03-01 UA 1991-02-01 US 1988-01-01 UY 2000-02-01 UZ 1997-12-01
VN 2017-01-01 ZM 1988-01-01
"""
ARTICLE_95 = frozenset({"AM", "CN", "LA", "VC", "SG", "SK", "US"})
"""Not bound by article 1(1)(b): UNCITRAL, status of the CISG; Czechia withdrew its declaration in 2018."""
NORDIC = frozenset({"DK", "FI", "IS", "NO", "SE"})
"""By article 94 the convention does not apply between them."""
_NEW_YORK = """
AL 2001-09-25 DZ 1989-05-08 AG 1989-05-03 AR 1989-06-12 AM 1998-03-29 AU 1975-06-24 AT 1961-07-31 AZ 2000-05-29
BH 1988-07-05 BD 1992-08-04 BB 1993-06-14 BY 1961-02-13 BE 1975-11-16 BJ 1974-08-14 BO 1995-07-27 BA 1992-03-06
BW 1972-03-19 BR 2002-09-05 BN 1996-10-23 BG 1962-01-08 BF 1987-06-21 KH 1960-04-04 CM 1988-05-19 CA 1986-08-10
CF 1963-01-13 CL 1975-12-03 CN 1987-04-22 CO 1979-12-24 CR 1988-01-24 CI 1991-05-02 HR 1991-10-08 CU 1975-03-30
CY 1981-03-29 CZ 1993-01-01 DK 1973-03-22 DJ 1977-06-27 DM 1989-01-26 DO 2002 EC 1962 EG 1959 SV 1998 EE 1993 FI 1962
FR 1959 GE 1994 DE 1961 GH 1968 GR 1962 GT 1984 GN 1991 HT 1984 VA 1975 HN 2001 HK 1977 HU 1962 IS 2002 IN 1960 ID 1982
IR 2002 IE 1981 IL 1959 IT 1969 JM 2002 JP 1961 JO 1980 KZ 1996 KE 1989 KW 1978 KG 1997 LA 1998 LV 1992 LB 1998 LS 1989
LR 2005 LI 2011 LT 1995 LU 1983 MG 1962 MY 1986 ML 1994 MT 2000 MH 2007 MR 1997 MU 1996 MX 1971 MC 1982 MN 1995 ME 2006
MA 1959 MZ 1998 MM 2013 NP 1998 NL 1964 NZ 1983 NI 2003 NE 1965 NG 1970 MK 1991 NO 1961 OM 1999 PK 2005 PA 1985 PY 1998
PE 1988 PH 1967 PL 1962 PT 1995 QA 2003 KR 1973 MD 1998 RO 1961 RU 1960 RW 2009 VC 2000 SM 1979 SA 1994 SN 1995 RS 1992
SG 1986 SK 1993 SI 1991 ZA 1976 ES 1977 LK 1962 SE 1972 CH 1965 SY 1959 TH 1960 TT 1966 TN 1967 TR 1992 UG 1992 UA 1961
AE 2006 GB 1975 TZ 1965 US 1970 UY 1983 UZ 1996 VE 1995 VN 1995 ZM 2002 ZW 1994 AF 2005 GA 2007 BS 2007 CK 2009 FJ 2010
ST 2013 TJ 2012 GY 2014 BT 2014 BI 2014 CD 2015 KM 2015 PS 2015 AD 2015 AO 2017 SD 2018 CV 2018 MV 2019 PG 2019 SC 2020
ET 2020 PW 2020 TO 2020 IQ 2022 BZ 2021 MW 2021 SL 2021 TM 2022 SR 2023 TL 2023
"""
RECIPROCITY = frozenset({"US", "CN", "IN", "GB", "FR", "JP", "SG", "MY", "KR", "TR", "ID", "PH", "SA", "NG"})
"""Enforces awards of other contracting states only (article I(3)); those that are certain."""
_CHOICE_OF_COURT = """
MX 2015-10-01 SG 2016-10-01 ME 2018-08-01 DK 2018-09-01 UA 2023-08-01 MD 2024-07-01 AL 2024-10-01 CH 2025-01-01
GB 2015-10-01
"""
_JUDGMENTS = "UA 2023-09-01 UY 2024-10-01 GB 2025-07-01"


def _members(table: str) -> dict[str, tuple[date, date]]:
    words = table.split()
    return {code: _parse_since(day) for code, day in zip(words[::2], words[1::2], strict=True)}


def _parse_since(day: str) -> tuple[date, date]:
    if len(day) == 4:
        return date(int(day), 1, 1), date(int(day) + 1, 1, 1)
    return date.fromisoformat(day), date.fromisoformat(day)


def _with_union(table: str, since: str) -> dict[str, tuple[date, date]]:
    return {code: _parse_since(since) for code in EUROPEAN_UNION - {"DK"}} | _members(table)


@cache
def conventions() -> dict[str, Convention]:
    """Return the conventions by key."""
    rows = (
        Convention(
            "CISG",
            "United Nations Convention on Contracts for the International Sale of Goods (Vienna, 1980)",
            "UNCITRAL, status of the CISG; WIPO Lex, treaty 292",
            date(2024, 12, 31),
            _members(_CISG),
            special=ARTICLE_95,
        ),
        Convention(
            "New York 1958",
            "Convention on the Recognition and Enforcement of Foreign Arbitral Awards (New York, 1958)",
            "UNCITRAL, status of the New York Convention",
            date(2023, 12, 31),
            _members(_NEW_YORK),
            special=RECIPROCITY,
        ),
        Convention(
            "Hague Choice of Court 2005",
            "Convention of 30 June 2005 on Choice of Court Agreements (The Hague)",
            "HCCH, status table 98 of 19 September 2024",
            date(2024, 9, 19),
            _with_union(_CHOICE_OF_COURT, "2015-10-01"),
            signed=frozenset({"CN", "US", "IL", "CR"}),
            open=frozenset({"MK"}),
        ),
        Convention(
            "Hague Judgments 2019",
            "Convention of 2 July 2019 on the Recognition and Enforcement of Foreign Judgments (The Hague)",
            "HCCH, status table 137",
            date(2024, 9, 19),
            _with_union(_JUDGMENTS, "2023-09-01"),
            signed=frozenset({"US", "RU", "IL", "CR"}),
            open=frozenset({"AL", "ME", "AD", "MK"}),
        ),
    )
    return {row.key: row for row in rows}


_CONVENTION_NAMES = {
    "CISG": "cisg|vienna|vienna convention|vienna sales convention|un sales convention|vienna 1980|cisg 1980",
    "New York 1958": (
        "new york|new york convention|ny convention|nyc|new york 1958|new york convention 1958|1958 new york convention"
        "|new york convention on arbitral awards|arbitration|new_york|foreign arbitral awards"
    ),
    "Hague Choice of Court 2005": (
        "hague|hague convention|the hague|hague 2005|hague choice of court|hague choice of court 2005|choice of court"
        "|hague choice of court convention|hague convention on choice of court agreements|hague_2005"
        "|hague convention 2005|hague_choice_of_court"
    ),
    "Hague Judgments 2019": (
        "hague judgments|hague judgments 2019|hague judgments convention|hague 2019|hague_2019|judgments convention"
        "|hague_judgments"
    ),
}


def find_convention(name: str) -> Convention | None:
    """Return the convention with this common name, or None."""
    normalised = " ".join(name.casefold().replace(",", " ").replace("(", " ").replace(")", " ").split())
    for key, aliases in _CONVENTION_NAMES.items():
        if normalised in aliases.split("|") or normalised in (key.casefold(), conventions()[key].name.casefold()):
            return conventions()[key]
    return None
