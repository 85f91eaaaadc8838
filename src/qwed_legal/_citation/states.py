"""States and territories of the United States as written in citations (The Bluebook, table T10)."""

from functools import cache

_TABLE = """
al Ala.|Alabama
ak Alaska
az Ariz.|Arizona
ar Ark.|Arkansas
ca Cal.|Calif.|California
co Colo.|Colorado
ct Conn.|Connecticut
de Del.|Delaware
dc D.C.|District of Columbia
fl Fla.|Florida
ga Ga.|Georgia
hi Haw.|Hawaii|Hawai'i
id Idaho
il Ill.|Illinois
in Ind.|Indiana
ia Iowa
ks Kan.|Kansas
ky Ky.|Kentucky
la La.|Louisiana
me Me.|Maine
md Md.|Maryland
ma Mass.|Massachusetts
mi Mich.|Michigan
mn Minn.|Minnesota
ms Miss.|Mississippi
mo Mo.|Missouri
mt Mont.|Montana
ne Neb.|Nebraska
nv Nev.|Nevada
nh N.H.|New Hampshire
nj N.J.|New Jersey
nm N.M.|New Mexico
ny N.Y.|New York
nc N.C.|North Carolina
nd N.D.|North Dakota
oh Ohio
ok Okla.|Oklahoma
or Or.|Ore.|Oregon
pa Pa.|Pennsylvania
ri R.I.|Rhode Island
sc S.C.|South Carolina
sd S.D.|South Dakota
tn Tenn.|Tennessee
tx Tex.|Texas
ut Utah
vt Vt.|Vermont
va Va.|Virginia
wa Wash.|Washington
wv W. Va.|West Virginia
wi Wis.|Wisconsin
wy Wyo.|Wyoming
as Am. Sam.|American Samoa
gu Guam
mp N. Mar. I.|Northern Mariana Islands
pr P.R.|Puerto Rico
vi V.I.|Virgin Islands
"""


@cache
def states() -> dict[str, str]:
    """Return the state codes by abbreviation and by name, without blanks and dots."""
    rows = (line.split(" ", 1) for line in _TABLE.strip().splitlines())
    return {name.replace(" ", "").replace(".", ""): code for code, names in rows for name in names.split("|")}


@cache
def state_names() -> tuple[str, ...]:
    """Return every abbreviation and name, the longest first."""
    rows = (line.split(" ", 1)[1].split("|") for line in _TABLE.strip().splitlines())
    return tuple(sorted((name for row in rows for name in row), key=len, reverse=True))
