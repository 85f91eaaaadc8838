"""Limitation periods of the US states, Alabama to Iowa, in the format of `table`."""

TABLE = """
US-AL Ala. Code
breach_of_contract 6 6-2-34(9) | under seal 10 years, 6-2-33
breach_of_oral_contract 6 6-2-34(9)
personal_injury 2 6-2-38(l)
property_damage 6 6-2-34 short=2 | trespass; by negligence 2 years, 6-2-38(l)
fraud 2 6-2-38(l) | from discovery, 6-2-3
defamation 2 6-2-38(k)
medical_malpractice 2 6-5-482 | or six months from discovery, at most four years
wrongful_death 2 6-5-410 | from the death
product_liability 2 6-2-38(l)
open_account 3 6-2-37
sale_of_goods 4 7-2-725
US-AK Alaska Stat.
breach_of_contract 3 09.10.053
breach_of_oral_contract 3 09.10.053
personal_injury 2 09.10.070
property_damage 2 09.10.070 long=6 | of personal property; trespass on real property 6 years, 09.10.050
fraud 2 09.10.070 | from discovery
defamation 2 09.10.070
medical_malpractice 2 09.10.070 | from discovery
wrongful_death 2 09.55.580 | from the death
product_liability 2 09.10.070
open_account 3 09.10.053
sale_of_goods 4 45.02.725
US-AZ Ariz. Rev. Stat.
breach_of_contract 6 12-548
breach_of_oral_contract 3 12-543
personal_injury 2 12-542
property_damage 2 12-542
fraud 3 12-543 | from discovery
defamation 1 12-541
medical_malpractice 2 12-542 | from discovery
wrongful_death 2 12-542 | from the death
product_liability 2 12-551
open_account 3 12-543 long=6 | of a credit card 6 years, 12-548
sale_of_goods 4 47-2725
US-AR Ark. Code
breach_of_contract 5 16-56-111
breach_of_oral_contract 3 16-56-105
personal_injury 3 16-56-105
property_damage 3 16-56-105
fraud 3 16-56-105
defamation 3 16-56-105 short=1 | libel 3 years, slander 1 year, 16-56-104
libel 3 16-56-105
slander 1 16-56-104
medical_malpractice 2 16-114-203
wrongful_death 3 16-62-102 | from the death
product_liability 3 16-116-203
open_account 3 16-56-105
sale_of_goods 4 4-2-725
US-CA Cal. Code Civ. Proc.
breach_of_contract 4 337
breach_of_oral_contract 2 339
personal_injury 2 335.1
property_damage 3 338
fraud 3 338(d) | from discovery
defamation 1 340(c)
medical_malpractice 3 340.5 short=1 | or one year from discovery, whichever is first
wrongful_death 2 335.1 | from the death
product_liability 2 335.1
open_account 4 337 | book accounts and accounts stated
sale_of_goods 4 =Cal. Com. Code 2725
US-CO Colo. Rev. Stat.
breach_of_contract 3 13-80-101 long=6 | debts of a fixed amount 6 years, 13-80-103.5
breach_of_oral_contract 3 13-80-101 long=6 | debts of a fixed amount 6 years, 13-80-103.5
personal_injury 2 13-80-102 long=3 | from motor vehicles 3 years, 13-80-101
property_damage 2 13-80-102 long=3 | from motor vehicles 3 years, 13-80-101
fraud 3 13-80-101 | from discovery
defamation 1 13-80-103
medical_malpractice 2 13-80-102.5 | from discovery, at most three years
wrongful_death 2 13-80-102 | from the death
product_liability 2 13-80-106
sale_of_goods 3 4-2-725, 13-80-101
US-CT Conn. Gen. Stat.
breach_of_contract 6 52-576
breach_of_oral_contract 3 52-581 long=6 | of a contract that is executory; performed by one side 6 years, 52-576
personal_injury 2 52-584 | from discovery, at most three years
property_damage 2 52-584 | from discovery, at most three years
fraud 3 52-577
defamation 2 52-597
medical_malpractice 2 52-584 | from discovery, at most three years
wrongful_death 2 52-555 | from the death, at most five years
product_liability 3 52-577a | from discovery
open_account 6 52-576
sale_of_goods 4 42a-2-725
US-DE 10 Del. C.
breach_of_contract 3 8106
breach_of_oral_contract 3 8106
personal_injury 2 8119
property_damage 2 8107 long=3 | of personal property; of real property 3 years, 8106
fraud 3 8106
defamation 2 8119
medical_malpractice 2 =18 Del. C. 6856
wrongful_death 2 8107
product_liability 2 8119
open_account 3 8106
sale_of_goods 4 =6 Del. C. 2-725
US-DC D.C. Code
breach_of_contract 3 12-301
breach_of_oral_contract 3 12-301
personal_injury 3 12-301
property_damage 3 12-301
fraud 3 12-301
defamation 1 12-301
medical_malpractice 3 12-301 | from discovery
wrongful_death 2 16-2702 | from the death
product_liability 3 12-301
open_account 3 12-301
sale_of_goods 4 28:2-725
US-FL Fla. Stat.
breach_of_contract 5 95.11(2)
breach_of_oral_contract 4 95.11(3)
personal_injury 4 95.11(3) before=2023-03-25
personal_injury 2 95.11, Laws of Florida 2023-15 since=2023-03-25 | founded on negligence
property_damage 4 95.11(3) before=2023-03-25
property_damage 4 95.11(3) since=2023-03-25 short=2 | founded on negligence 2 years
fraud 4 95.11(3) | from discovery, at most twelve years
defamation 2 95.11
medical_malpractice 2 95.11 | from discovery, at most four years
wrongful_death 2 95.11 | from the death
product_liability 4 95.11(3)
open_account 4 95.11(3)
sale_of_goods 4 672.725
US-GA Ga. Code
breach_of_contract 6 9-3-24
breach_of_oral_contract 4 9-3-26
personal_injury 2 9-3-33
property_damage 4 9-3-31
fraud 4 9-3-31 | from discovery
defamation 1 9-3-33
medical_malpractice 2 9-3-71 | at most five years
wrongful_death 2 9-3-33 | from the death
product_liability 2 9-3-33
open_account 4 9-3-25
sale_of_goods 4 11-2-725
US-HI Haw. Rev. Stat.
breach_of_contract 6 657-1
breach_of_oral_contract 6 657-1
personal_injury 2 657-7
property_damage 2 657-7
fraud 6 657-1
defamation 2 657-4
medical_malpractice 2 657-7.3 | from discovery, at most six years
wrongful_death 2 663-3 | from the death
product_liability 2 657-7
open_account 6 657-1
sale_of_goods 4 490:2-725
US-ID Idaho Code
breach_of_contract 5 5-216
breach_of_oral_contract 4 5-217
personal_injury 2 5-219
property_damage 3 5-218
fraud 3 5-218 | from discovery
defamation 2 5-219
medical_malpractice 2 5-219
wrongful_death 2 5-219 | from the death
product_liability 2 5-219
open_account 4 5-217
sale_of_goods 4 28-2-725
US-IL 735 ILCS
breach_of_contract 10 5/13-206
breach_of_oral_contract 5 5/13-205
personal_injury 2 5/13-202
property_damage 5 5/13-205
fraud 5 5/13-205 | from discovery
defamation 1 5/13-201
medical_malpractice 2 5/13-212 | from discovery, at most four years
wrongful_death 2 =740 ILCS 180/2 | from the death
product_liability 2 5/13-213 | from discovery
open_account 5 5/13-205
sale_of_goods 4 =810 ILCS 5/2-725
US-IN Ind. Code
breach_of_contract 10 34-11-2-11 short=6 | for the payment of money 6 years, 34-11-2-9
breach_of_oral_contract 6 34-11-2-7
personal_injury 2 34-11-2-4
property_damage 2 34-11-2-4 long=6 | of personal property; of real property 6 years, 34-11-2-7
fraud 6 34-11-2-7
defamation 2 34-11-2-4
medical_malpractice 2 34-18-7-1 | from the act
wrongful_death 2 34-23-1-1 | from the death
product_liability 2 34-20-3-1
open_account 6 34-11-2-7
sale_of_goods 4 26-1-2-725
US-IA Iowa Code
breach_of_contract 10 614.1(5)
breach_of_oral_contract 5 614.1(4)
personal_injury 2 614.1(2)
property_damage 5 614.1(4)
fraud 5 614.1(4) | from discovery
defamation 2 614.1(2)
medical_malpractice 2 614.1(9) | from discovery, at most six years
wrongful_death 2 614.1(2) | from the death
product_liability 2 614.1(2)
open_account 5 614.1(4)
"""
