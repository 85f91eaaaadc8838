"""Limitation periods of US federal law, the United Kingdom, Germany, France and India, in the format of `table`.

`year_end` is section 199(1) of the German Civil Code: the period starts with the end of the year.
"""

TABLE = """
US-FEDERAL 28 U.S.C.
breach_of_contract 6 2501 | against the United States in the Court of Federal Claims
personal_injury 2 2401(b) | against the United States: claim in writing to the agency
property_damage 2 2401(b) | against the United States: claim in writing to the agency
wrongful_death 2 2401(b) | against the United States: claim in writing to the agency
medical_malpractice 2 2401(b) | against the United States: claim in writing to the agency
copyright_infringement 3 =17 U.S.C. 507(b)
patent_infringement 6 =35 U.S.C. 286 | damages
trade_secret_misappropriation 3 =18 U.S.C. 1836(d) | from discovery
antitrust 4 =15 U.S.C. 15b
wage_and_hour 2 =29 U.S.C. 255(a) long=3 | a willful violation 3 years
debt_collection_practices 1 =15 U.S.C. 1692k(d)
securities_fraud 5 1658(b) short=2 | or two years from discovery, whichever is first
GB-EAW Limitation Act 1980
breach_of_contract 6 s. 5
breach_of_oral_contract 6 s. 5
specialty 12 s. 8
personal_injury 3 s. 11 | or from the date of knowledge, s. 14
medical_malpractice 3 s. 11 | or from the date of knowledge, s. 14
wrongful_death 3 s. 12 | from the death or the date of knowledge
property_damage 6 s. 2 | latent damage s. 14A
negligence 6 s. 2 | without personal injury; with it 3 years, s. 11
trespass 6 s. 2
fraud 6 s. 2, s. 32 | from discovery
defamation 1 s. 4A
product_liability 3 s. 11A | at most ten years
open_account 6 s. 5
sale_of_goods 6 s. 5
GB-SCT Prescription and Limitation (Scotland) Act 1973
breach_of_contract 5 s. 6
breach_of_oral_contract 5 s. 6
personal_injury 3 s. 17 | or from the date of awareness
medical_malpractice 3 s. 17 | or from the date of awareness
wrongful_death 3 s. 18 | from the death or the date of awareness
property_damage 5 s. 6, s. 11 | or from the date of awareness
fraud 5 s. 6
defamation 3 s. 18A before=2022-08-08
defamation 1 s. 18A, Defamation and Malicious Publication (Scotland) Act 2021 s. 32 since=2022-08-08
product_liability 3 s. 22B | at most ten years
open_account 5 s. 6
sale_of_goods 5 s. 6
GB-NIR Limitation (Northern Ireland) Order 1989
breach_of_contract 6 art. 4
breach_of_oral_contract 6 art. 4
personal_injury 3 art. 7 | or from the date of knowledge
medical_malpractice 3 art. 7 | or from the date of knowledge
wrongful_death 3 art. 9 | from the death or the date of knowledge
property_damage 6 art. 6
negligence 6 art. 6 | without personal injury; with it 3 years, art. 7
trespass 6 art. 6
fraud 6 art. 6, art. 71 | from discovery
defamation 1 art. 6(2)
product_liability 3 art. 8 | or from the date of knowledge, at most ten years
open_account 6 art. 4
sale_of_goods 6 art. 4
DE BGB
breach_of_contract 3 195, 199(1) year_end | from knowledge, at most ten years
breach_of_oral_contract 3 195, 199(1) year_end | from knowledge, at most ten years
personal_injury 3 195, 199(1) year_end | from knowledge, at most thirty years
medical_malpractice 3 195, 199(1) year_end | from knowledge, at most thirty years
wrongful_death 3 195, 199(1) year_end | from knowledge, at most thirty years
property_damage 3 195, 199(1) year_end | from knowledge, at most ten years
fraud 3 195, 199(1) year_end | from knowledge, at most ten years
defamation 3 195, 199(1) year_end | from knowledge
negligence 3 195, 199(1) year_end | from knowledge
open_account 3 195, 199(1) year_end
product_liability 3 =ProdHaftG 12 | from knowledge, at most ten years
sale_of_goods 2 438(1) no. 3, 438(2) | claims for defects, from delivery; the price 3 years, 195, 199
judgment 30 197(1) no. 3
FR Code civil
breach_of_contract 5 art. 2224 since=2008-06-19 | from knowledge
breach_of_oral_contract 5 art. 2224 since=2008-06-19 | from knowledge
property_damage 5 art. 2224 since=2008-06-19 | from knowledge
fraud 5 art. 2224 since=2008-06-19 | from knowledge
personal_injury 10 art. 2226 since=2008-06-19 | from when the injury is consolidated
wrongful_death 10 art. 2226 since=2008-06-19
medical_malpractice 10 =Code de la sante publique art. L1142-28 since=2002-03-05 | from when the injury is consolidated
product_liability 3 art. 1245-16 | from knowledge, at most ten years
defamation 3m =Loi du 29 juillet 1881 art. 65
open_account 5 art. 2224 since=2008-06-19 short=2 | against a consumer 2 years, Code de la consommation art. L218-2
judgment 10 =Code des procedures civiles d'execution art. L111-4
IN Limitation Act 1963, Schedule
breach_of_contract 3 art. 55
breach_of_oral_contract 3 art. 55
personal_injury 3 art. 113 since=2022-04-01 short=6m | from motor accidents 6 months, Motor Vehicles Act 1988 s. 166(3)
medical_malpractice 3 art. 113 short=2 | to a consumer commission 2 years, Consumer Protection Act 2019 s. 69
product_liability 3 art. 113 short=2 | to a consumer commission 2 years, Consumer Protection Act 2019 s. 69
property_damage 3 art. 91 | movable property
fraud 3 art. 59, s. 17 | from discovery
defamation 1 art. 75, art. 76
wrongful_death 2 art. 82 | Fatal Accidents Act 1855, from the death
sale_of_goods 3 art. 14 | price of goods sold
money_lent 3 art. 19
recovery_of_land 12 art. 65
judgment 12 art. 136
trespass 3 art. 87 | upon immovable property
"""
