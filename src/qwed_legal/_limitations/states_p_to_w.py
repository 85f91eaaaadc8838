"""Limitation periods of the US states, Pennsylvania to Wyoming, in the format of `table`."""

TABLE = """
US-PA 42 Pa. Cons. Stat.
breach_of_contract 4 5525
breach_of_oral_contract 4 5525
personal_injury 2 5524
property_damage 2 5524
fraud 2 5524
defamation 1 5523
medical_malpractice 2 5524
wrongful_death 2 5524
product_liability 2 5524
open_account 4 5525
sale_of_goods 4 =13 Pa. Cons. Stat. 2725
US-RI R.I. Gen. Laws
breach_of_contract 10 9-1-13
breach_of_oral_contract 10 9-1-13
personal_injury 3 9-1-14
property_damage 10 9-1-13
fraud 10 9-1-13
defamation 3 9-1-14 short=1 | libel 3 years, slander 1 year
libel 3 9-1-14
slander 1 9-1-14
medical_malpractice 3 9-1-14.1 | or from discovery
wrongful_death 3 10-7-2 | from the death
product_liability 3 9-1-14
open_account 10 9-1-13
sale_of_goods 4 6A-2-725
US-SC S.C. Code
breach_of_contract 3 15-3-530
breach_of_oral_contract 3 15-3-530
personal_injury 3 15-3-530
property_damage 3 15-3-530
fraud 3 15-3-530 | from discovery
defamation 2 15-3-550
medical_malpractice 3 15-3-545 | from discovery, at most six years
wrongful_death 3 15-3-530 | from the death
product_liability 3 15-3-530
open_account 3 15-3-530
sale_of_goods 6 36-2-725
US-SD S.D. Codified Laws
breach_of_contract 6 15-2-13
breach_of_oral_contract 6 15-2-13
personal_injury 3 15-2-14
property_damage 6 15-2-13
fraud 6 15-2-13 | from discovery
defamation 2 15-2-15
medical_malpractice 2 15-2-14.1 | from the act
wrongful_death 3 21-5-3 | from the death
product_liability 3 15-2-12.2
open_account 6 15-2-13
sale_of_goods 4 57A-2-725
US-TN Tenn. Code
breach_of_contract 6 28-3-109
breach_of_oral_contract 6 28-3-109
personal_injury 1 28-3-104
property_damage 3 28-3-105
fraud 3 28-3-105
defamation 1 28-3-104 short=6m | libel 1 year, slander 6 months, 28-3-103
libel 1 28-3-104
slander 6m 28-3-103
medical_malpractice 1 29-26-116 | from discovery, at most three years
wrongful_death 1 28-3-104
product_liability 1 28-3-104
open_account 6 28-3-109
sale_of_goods 4 47-2-725
US-TX Tex. Civ. Prac. & Rem. Code
breach_of_contract 4 16.051, 16.004
breach_of_oral_contract 4 16.051, 16.004
personal_injury 2 16.003
property_damage 2 16.003
fraud 4 16.004 | from discovery
defamation 1 16.002
medical_malpractice 2 74.251 | at most ten years
wrongful_death 2 16.003 | from the death
product_liability 2 16.003
open_account 4 16.004
sale_of_goods 4 =Tex. Bus. & Com. Code 2.725
US-UT Utah Code
breach_of_contract 6 78B-2-309
breach_of_oral_contract 4 78B-2-307
personal_injury 4 78B-2-307
property_damage 3 78B-2-305 before=2023-05-03
property_damage 3 78B-2-305 since=2023-05-03 long=4 | from motor vehicles 4 years, 78B-2-307
fraud 3 78B-2-305 | from discovery
defamation 1 78B-2-302
medical_malpractice 2 78B-3-404 | from discovery, at most four years
wrongful_death 2 78B-2-304
product_liability 2 78B-6-706 | from discovery
open_account 4 78B-2-307
sale_of_goods 4 70A-2-725
US-VT Vt. Stat. tit. 12
breach_of_contract 6 511
breach_of_oral_contract 6 511
personal_injury 3 512 | from discovery
property_damage 3 512 long=6 | of personal property; of real property 6 years, 511
fraud 6 511
defamation 3 512
medical_malpractice 3 521 | or two years from discovery, whichever is later
wrongful_death 2 =Vt. Stat. tit. 14, 1492
product_liability 3 512
open_account 6 511
sale_of_goods 4 =Vt. Stat. tit. 9A, 2-725
US-VA Va. Code
breach_of_contract 5 8.01-246
breach_of_oral_contract 3 8.01-246
personal_injury 2 8.01-243(A)
property_damage 5 8.01-243(B)
fraud 2 8.01-243(A) | from discovery, 8.01-249
defamation 1 8.01-247.1
medical_malpractice 2 8.01-243(A)
wrongful_death 2 8.01-244 | from the death
product_liability 2 8.01-243(A)
open_account 3 8.01-246
sale_of_goods 4 8.2-725
US-WA Wash. Rev. Code
breach_of_contract 6 4.16.040
breach_of_oral_contract 3 4.16.080
personal_injury 3 4.16.080
property_damage 3 4.16.080 short=2 | of personal property; of real property by negligence 2 years, 4.16.130
fraud 3 4.16.080 | from discovery
defamation 2 4.16.100
medical_malpractice 3 4.16.350 | or one year from discovery, whichever is later
wrongful_death 3 4.16.080
product_liability 3 7.72.060 | from discovery
open_account 6 4.16.040
sale_of_goods 4 62A.2-725
US-WV W. Va. Code
breach_of_contract 10 55-2-6
breach_of_oral_contract 5 55-2-6
personal_injury 2 55-2-12
property_damage 2 55-2-12
fraud 2 55-2-12 | from discovery
defamation 1 55-2-12
medical_malpractice 2 55-7B-4 | from discovery, at most ten years
wrongful_death 2 55-7-6 | from the death
product_liability 2 55-2-12
open_account 5 55-2-6
sale_of_goods 4 46-2-725
US-WI Wis. Stat.
breach_of_contract 6 893.43
breach_of_oral_contract 6 893.43
personal_injury 3 893.54
property_damage 6 893.52 before=2016-02-06
property_damage 6 893.52 since=2016-02-06 short=3 | from motor vehicles 3 years
fraud 6 893.93 before=2018-04-05 | from discovery
fraud 6 893.93 since=2018-04-05 before=2018-07-02 short=3 | from discovery
fraud 3 893.93 since=2018-07-02 | from discovery
defamation 3 893.57 since=2010-02-26
medical_malpractice 3 893.55 | or one year from discovery, whichever is later
wrongful_death 3 893.54 before=2016-02-06
wrongful_death 3 893.54 since=2016-02-06 short=2 | from motor vehicles 2 years
product_liability 3 893.54
open_account 6 893.43
sale_of_goods 6 402.725
US-WY Wyo. Stat.
breach_of_contract 10 1-3-105
breach_of_oral_contract 8 1-3-105
personal_injury 4 1-3-105
property_damage 4 1-3-105
fraud 4 1-3-105 | from discovery
defamation 1 1-3-105
medical_malpractice 2 1-3-107
wrongful_death 2 1-38-102 | from the death
product_liability 4 1-3-105
open_account 8 1-3-105
sale_of_goods 4 34.1-2-725
"""
