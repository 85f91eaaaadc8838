"""Names of state codes that reporters-db lacks, or lists without subjects (The Bluebook, table T1.3)."""

from qwed.model.data_files import read_table

BY_SECTION = """
La. Rev. Stat.|La. Rev. Stat. Ann.|La. R.S.|A.R.S.|C.R.S.|O.C.G.A.|N.J.S.A.|N.J.S.|K.S.A.|KRS|RSMo|RCW|ORS|NRS|MCL
MCLA|M.C.L.|N.D.C.C.|NDCC|SDCL|MCA|R.C.|O.R.C.|RSA|HRS|T.C.A.|G.L.|Iowa Code|Utah Code|N.C.G.S.|C.G.S.|S.C. Code
Va. Code|Idaho Code|Ind. Code|Minn. Stat.|Wis. Stat.|Fla. Stat.|Tenn. Code|Ala. Code|Nev. Rev. Stat.|Neb. Rev. Stat.
Or. Rev. Stat.|Wash. Rev. Code|Colo. Rev. Stat.|Mo. Rev. Stat.|W. Va. Code|D.C. Code|Ga. Code|Miss. Code|Ark. Code
Mont. Code|Wyo. Stat.|NMSA 1978|Ohio Rev. Code|Ohio Rev. Code Ann.|Mich. Comp. Laws|Conn. Gen. Stat.|N.C. Gen. Stat.
"""
"""Codes that are cited by section alone, including the states' own abbreviations."""
CALIFORNIA = """
Bus. & Prof.|Civ.|Civ. Proc.|Com.|Corp.|Educ.|Elec.|Evid.|Fam.|Fin.|Fish & Game|Food & Agric.|Gov't|Harb. & Nav.
Health & Safety|Ins.|Lab.|Labor|Mil. & Vet.|Penal|Prob.|Pub. Cont.|Pub. Res.|Pub. Util.|Rev. & Tax.|Sts. & High.
Unemp. Ins.|Veh.|Water|Welf. & Inst.|Civil|Evidence|Family|Vehicle|Government|Probate|Corporations
Business & Professions|Business and Professions|Insurance|Elections|Education|Welfare & Institutions
Welfare and Institutions|Health and Safety
"""
NEW_YORK = read_table(__file__, "new_york_laws.txt")
TEXAS = """
Agric.|Alco. Bev.|Bus. & Com.|Bus. Orgs.|Civ. Prac. & Rem.|Educ.|Elec.|Est.|Fam.|Fin.|Gov't|Health & Safety
Hum. Res.|Ins.|Lab.|Loc. Gov't|Nat. Res.|Occ.|Parks & Wild.|Penal|Prob.|Prop.|Spec. Dists.|Tax|Transp.|Util.|Water
Family|Labor|Business & Commerce|Property|Government|Estates
"""
MARYLAND = """
Agric.|Bus. Occ. & Prof.|Bus. Reg.|Com. Law|Corps. & Ass'ns|Corr. Servs.|Cts. & Jud. Proc.|Crim. Law|Crim. Proc.
Econ. Dev.|Educ.|Elec. Law|Env't|Est. & Trusts|Fam. Law|Fin. Inst.|Gen. Prov.|Health-Gen.|Health Occ.
Hous. & Cmty. Dev.|Hum. Servs.|Ins.|Lab. & Empl.|Land Use|Local Gov't|Nat. Res.|Pub. Safety|Pub. Util.|Real Prop.
State Fin. & Proc.|State Gov't|State Pers. & Pens.|Tax-Gen.|Tax-Prop.|Transp.
"""
SUBJECTS = (
    (r"(?:Cal\.|California) ", CALIFORNIA, r" Code(?: Ann\.)?"),
    (r"(?:N\. ?Y\.|New York) ", NEW_YORK, r" Law"),
    (r"(?:Tex\.|Texas) ", TEXAS, r" Code(?: Ann\.)?"),
    (r"(?:Md\.|Maryland) Code Ann\., ", MARYLAND, ""),
)
"""Codes that are cited by subject: prefix, subjects and suffix."""


def names_longest_first(table: str) -> list[str]:
    """Return the names of a table, the longest first."""
    return sorted(table.strip().replace("\n", "|").split("|"), key=len, reverse=True)
