"""Limitation periods of the US states, Kansas to Nevada, in the format of `table`."""

TABLE = """
US-KS Kan. Stat.
breach_of_contract 5 60-511
breach_of_oral_contract 3 60-512
personal_injury 2 60-513
property_damage 2 60-513
fraud 2 60-513 | from discovery
defamation 1 60-514
medical_malpractice 2 60-513 | at most four years
wrongful_death 2 60-513
product_liability 2 60-513
open_account 3 60-512
sale_of_goods 4 84-2-725
US-KY Ky. Rev. Stat.
breach_of_contract 15 413.090 before=2014-07-15
breach_of_contract 10 413.160 since=2014-07-15 long=15 | executed before 2014-07-15: 15 years, 413.090
breach_of_oral_contract 5 413.120
personal_injury 1 413.140 long=2 | from motor vehicles 2 years, 304.39-230
property_damage 2 413.125 long=5 | of personal property; of real property 5 years, 413.120
fraud 5 413.120 | from discovery
defamation 1 413.140
medical_malpractice 1 413.140 | from discovery, at most five years
wrongful_death 1 413.180 long=2 | from the appointment of the representative; from motor vehicles 2 years, 304.39-230
product_liability 1 413.140
open_account 5 413.120
sale_of_goods 4 355.2-725
US-LA La. Civ. Code
breach_of_contract 10 art. 3499
breach_of_oral_contract 10 art. 3499
personal_injury 1 art. 3492 before=2024-07-01
personal_injury 2 art. 3493.1 since=2024-07-02
property_damage 1 art. 3492 before=2024-07-01
property_damage 2 art. 3493.1 since=2024-07-02
defamation 1 art. 3492 before=2024-07-01
defamation 2 art. 3493.1 since=2024-07-02
fraud 1 art. 3492 before=2024-07-01 long=10 | in a contract 5 years from discovery, art. 2032, or 10 years, art. 3499
fraud 2 art. 3493.1 since=2024-07-02 long=10 | in a contract 5 years from discovery, art. 2032, or 10 years, art. 3499
medical_malpractice 1 =La. Rev. Stat. 9:5628 | from discovery, at most three years
wrongful_death 1 art. 2315.2 before=2024-07-01 | from the death
wrongful_death 2 art. 2315.2 since=2024-07-02 short=1 | from the death; 2 years since 2025, for malpractice 1
product_liability 1 art. 3492 before=2024-07-01
product_liability 2 art. 3493.1 since=2024-07-02
open_account 3 art. 3494
US-ME Me. Rev. Stat. tit. 14
breach_of_contract 6 752
breach_of_oral_contract 6 752
personal_injury 6 752
property_damage 6 752
fraud 6 752, 859 | from discovery
defamation 2 753
medical_malpractice 3 =Me. Rev. Stat. tit. 24, 2902 | from the act
wrongful_death 2 =Me. Rev. Stat. tit. 18-C, 2-807 before=2021-10-25 | from the death
wrongful_death 3 =Me. Rev. Stat. tit. 18-C, 2-807 since=2021-10-25 before=2024-01-01 short=2 | from the death
wrongful_death 3 =Me. Rev. Stat. tit. 18-C, 2-807 since=2024-01-01 | from the death
product_liability 6 752
open_account 6 752
sale_of_goods 4 =Me. Rev. Stat. tit. 11, 2-725
US-MD Md. Code, Cts. & Jud. Proc.
breach_of_contract 3 5-101 | under seal 12 years, 5-102
breach_of_oral_contract 3 5-101
personal_injury 3 5-101
property_damage 3 5-101
fraud 3 5-101
defamation 1 5-105
medical_malpractice 5 5-109 short=3 | or three years from discovery, whichever is first
wrongful_death 3 3-904 | from the death
product_liability 3 5-101
open_account 3 5-101
sale_of_goods 4 =Md. Code, Com. Law 2-725
US-MA Mass. Gen. Laws c. 260
breach_of_contract 6 s. 2
breach_of_oral_contract 6 s. 2
personal_injury 3 s. 2A
property_damage 3 s. 2A
fraud 3 s. 2A
defamation 3 s. 4
medical_malpractice 3 s. 4 | at most seven years
wrongful_death 3 =Mass. Gen. Laws c. 229, s. 2 | from the death
product_liability 3 s. 2A
open_account 6 s. 2
sale_of_goods 4 =Mass. Gen. Laws c. 106, s. 2-725
US-MI Mich. Comp. Laws
breach_of_contract 6 600.5807
breach_of_oral_contract 6 600.5807
personal_injury 3 600.5805
property_damage 3 600.5805
fraud 6 600.5813
defamation 1 600.5805
medical_malpractice 2 600.5805, 600.5838a | or six months from discovery
wrongful_death 3 600.5805
product_liability 3 600.5805
open_account 6 600.5807
sale_of_goods 4 440.2725
US-MN Minn. Stat.
breach_of_contract 6 541.05
breach_of_oral_contract 6 541.05
personal_injury 6 541.05 | from negligence; from assault and battery 2 years, 541.07
property_damage 6 541.05
fraud 6 541.05 | from discovery
defamation 2 541.07
medical_malpractice 4 541.076
wrongful_death 3 573.02 | from the death
product_liability 4 541.05, subd. 2 long=6 | strict liability; negligence 6 years
open_account 6 541.05
sale_of_goods 4 336.2-725
US-MS Miss. Code
breach_of_contract 3 15-1-49
breach_of_oral_contract 3 15-1-29
personal_injury 3 15-1-49
property_damage 3 15-1-49
fraud 3 15-1-49
defamation 1 15-1-35
medical_malpractice 2 15-1-36 | from discovery, at most seven years
wrongful_death 3 15-1-49
product_liability 3 15-1-49
open_account 3 15-1-29
sale_of_goods 6 75-2-725
US-MO Mo. Rev. Stat.
breach_of_contract 10 516.110 short=5 | for the payment of money or property; else 5 years, 516.120
breach_of_oral_contract 5 516.120
personal_injury 5 516.120
property_damage 5 516.120
fraud 5 516.120 | from discovery, within ten years
defamation 2 516.140
medical_malpractice 2 516.105
wrongful_death 3 537.100
product_liability 5 516.120
open_account 5 516.120
sale_of_goods 4 400.2-725
US-MT Mont. Code
breach_of_contract 8 27-2-202 before=2025-10-01 short=6 | 6 years in the code of 2025
breach_of_contract 6 27-2-202 since=2025-10-01
breach_of_oral_contract 5 27-2-202
personal_injury 3 27-2-204
property_damage 3 27-2-204, 27-2-207 short=2 | two sections speak of it, with 3 and 2 years
fraud 2 27-2-203 | from discovery
defamation 2 27-2-204
medical_malpractice 3 27-2-205 before=2022-01-01 short=2 | 2 years since 2021; or from discovery, at most five years
medical_malpractice 2 27-2-205 since=2022-01-01 | or from discovery, at most five years
wrongful_death 3 27-2-204
product_liability 3 27-2-204
open_account 5 27-2-202
sale_of_goods 4 30-2-725
US-NE Neb. Rev. Stat.
breach_of_contract 5 25-205
breach_of_oral_contract 4 25-206
personal_injury 4 25-207
property_damage 4 25-207
fraud 4 25-207 | from discovery
defamation 1 25-208
medical_malpractice 2 25-222, 44-2828
wrongful_death 2 30-810 | from the death
product_liability 4 25-224
open_account 4 25-206
sale_of_goods 4 =Neb. U.C.C. 2-725
US-NV Nev. Rev. Stat.
breach_of_contract 6 11.190(1)
breach_of_oral_contract 4 11.190(2)
personal_injury 2 11.190(4)
property_damage 3 11.190(3) long=4 | of personal property; of real property 4 years, 11.220
fraud 3 11.190(3) | from discovery
defamation 2 11.190(4)
medical_malpractice 3 41A.097 before=2023-10-01 short=1 | or one year from discovery, whichever is first
medical_malpractice 3 41A.097 since=2023-10-01 short=2 | or two years from discovery, whichever is first
wrongful_death 2 11.190(4)
product_liability 2 11.190(4) long=4 | of persons; strict liability may have 4 years, 11.220
open_account 4 11.190(2)
sale_of_goods 4 104.2725
"""
