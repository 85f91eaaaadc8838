"""Limitation periods of the US states, New Hampshire to Oregon, in the format of `table`."""

TABLE = """
US-NH N.H. Rev. Stat.
breach_of_contract 3 508:4
breach_of_oral_contract 3 508:4
personal_injury 3 508:4
property_damage 3 508:4
fraud 3 508:4
defamation 3 508:4
medical_malpractice 3 508:4
wrongful_death 3 508:4, 556:11
product_liability 3 508:4
open_account 3 508:4
sale_of_goods 4 382-A:2-725
US-NJ N.J. Stat.
breach_of_contract 6 2A:14-1
breach_of_oral_contract 6 2A:14-1
personal_injury 2 2A:14-2
property_damage 6 2A:14-1
fraud 6 2A:14-1
defamation 1 2A:14-3
medical_malpractice 2 2A:14-2 | from discovery
wrongful_death 2 2A:31-3 | from the death
product_liability 2 2A:14-2
open_account 6 2A:14-1
sale_of_goods 4 12A:2-725
US-NM N.M. Stat.
breach_of_contract 6 37-1-3
breach_of_oral_contract 4 37-1-4
personal_injury 3 37-1-8
property_damage 4 37-1-4
fraud 4 37-1-4 | from discovery
defamation 3 37-1-8
medical_malpractice 3 41-5-13 | from the act
wrongful_death 3 41-2-2
product_liability 3 37-1-8
open_account 4 37-1-4
sale_of_goods 4 55-2-725
US-NY N.Y. C.P.L.R.
breach_of_contract 6 213(2)
breach_of_oral_contract 6 213(2)
personal_injury 3 214(5)
property_damage 3 214(4)
fraud 6 213(8) | or two years from discovery, whichever is later
defamation 1 215(3)
medical_malpractice 30m 214-a | from the act or the end of continuous treatment
wrongful_death 2 =N.Y. E.P.T.L. 5-4.1 | from the death
product_liability 3 214(5)
open_account 6 213(2) short=3 | consumer credit 3 years since 2022-04-07, 214-i
sale_of_goods 4 =N.Y. U.C.C. 2-725
US-NC N.C. Gen. Stat.
breach_of_contract 3 1-52(1) | under seal 10 years, 1-47
breach_of_oral_contract 3 1-52(1)
personal_injury 3 1-52(16)
property_damage 3 1-52(16)
fraud 3 1-52(9) | from discovery
defamation 1 1-54(3)
medical_malpractice 3 1-15(c) | at most four years
wrongful_death 2 1-53(4) | from the death
product_liability 3 1-52(16)
open_account 3 1-52(1)
sale_of_goods 4 25-2-725
US-ND N.D. Cent. Code
breach_of_contract 6 28-01-16
breach_of_oral_contract 6 28-01-16
personal_injury 6 28-01-16
property_damage 6 28-01-16
fraud 6 28-01-16 | from discovery
defamation 2 28-01-18
medical_malpractice 2 28-01-18 | from discovery, at most six years
wrongful_death 2 28-01-18 | from the death
product_liability 6 28-01-16
open_account 6 28-01-16
sale_of_goods 4 41-02-104
US-OH Ohio Rev. Code
breach_of_contract 15 2305.06 before=2012-09-28 latest=2020-09-28
breach_of_contract 8 2305.06 since=2012-09-28 before=2021-06-16 latest=2027-06-16
breach_of_contract 6 2305.06 since=2021-06-16
breach_of_oral_contract 6 2305.07 before=2021-06-16 latest=2025-06-16
breach_of_oral_contract 4 2305.07 since=2021-06-16
personal_injury 2 2305.10
property_damage 2 2305.10 long=4 | of personal property; of real property 4 years, 2305.09
fraud 4 2305.09 | from discovery
defamation 1 2305.11
medical_malpractice 1 2305.113 | from discovery, at most four years
wrongful_death 2 2125.02 | from the death
product_liability 2 2305.10
sale_of_goods 4 1302.98
US-OK Okla. Stat. tit. 12
breach_of_contract 5 95(A)(1)
breach_of_oral_contract 3 95(A)(2)
personal_injury 2 95(A)(3)
property_damage 2 95(A)(3)
fraud 2 95(A)(3) | from discovery
defamation 1 95(A)(4)
medical_malpractice 2 =Okla. Stat. tit. 76, 18 | from discovery
wrongful_death 2 1053 | from the death
product_liability 2 95(A)(3)
open_account 3 95(A)(2)
sale_of_goods 5 =Okla. Stat. tit. 12A, 2-725
US-OR Or. Rev. Stat.
breach_of_contract 6 12.080
breach_of_oral_contract 6 12.080
personal_injury 2 12.110(1)
property_damage 6 12.080 short=2 | of personal property; of real property by negligence 2 years, 12.110(1)
fraud 2 12.110(1) | from discovery
defamation 1 12.120
medical_malpractice 2 12.110(4) | from discovery, at most five years
wrongful_death 3 30.020 | from discovery of the injury that led to the death
product_liability 2 30.905 | from discovery
open_account 6 12.080
sale_of_goods 4 72.7250
"""
