"""Check digits: what tells the number of a person from any other number of that length."""

from collections.abc import Sequence


def luhn(digits: str) -> bool:
    """Payment cards, Canada, Sweden, Israel, South Africa."""
    odd = sum(map(int, digits[-1::-2]))
    return (odd + sum(_DOUBLED[int(digit)] for digit in digits[-2::-2])) % 10 == 0


_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def mod_97(account: str) -> bool:
    """IBAN (ISO 13616)."""
    rearranged = account[4:] + account[:4]
    return int("".join(str(int(character, 36)) for character in rearranged)) % 97 == 1


def verhoeff(digits: str) -> bool:
    """India, Aadhaar."""
    check = 0
    for index, digit in enumerate(reversed(digits)):
        check = _MULTIPLY[check][_PERMUTE[index % 8][int(digit)]]
    return check == 0 and digits[0] not in "01"


_MULTIPLY = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    (1, 2, 3, 4, 0, 6, 7, 8, 9, 5),
    (2, 3, 4, 0, 1, 7, 8, 9, 5, 6),
    (3, 4, 0, 1, 2, 8, 9, 5, 6, 7),
    (4, 0, 1, 2, 3, 9, 5, 6, 7, 8),
    (5, 9, 8, 7, 6, 0, 4, 3, 2, 1),
    (6, 5, 9, 8, 7, 1, 0, 4, 3, 2),
    (7, 6, 5, 9, 8, 2, 1, 0, 4, 3),
    (8, 7, 6, 5, 9, 3, 2, 1, 0, 4),
    (9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
)
_PERMUTE = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    (1, 5, 7, 6, 2, 8, 3, 0, 9, 4),
    (5, 8, 0, 3, 7, 9, 6, 1, 4, 2),
    (8, 9, 1, 6, 0, 4, 3, 5, 2, 7),
    (9, 4, 5, 3, 1, 2, 6, 8, 7, 0),
    (4, 2, 8, 6, 5, 7, 3, 9, 0, 1),
    (2, 7, 9, 3, 8, 0, 6, 4, 1, 5),
    (7, 0, 4, 6, 9, 1, 3, 2, 5, 8),
)


def _weighted(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _varied(digits: str) -> bool:
    return len(set(digits)) > 1


def cpf(digits: str) -> bool:
    """Brazil, persons."""
    first = _weighted(digits, range(10, 1, -1)) * 10 % 11 % 10
    second = _weighted(digits, range(11, 1, -1)) * 10 % 11 % 10
    return len(digits) == 11 and _varied(digits) and digits[9:] == f"{first}{second}"


def cnpj(digits: str) -> bool:
    """Brazil, companies."""
    weights = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
    first = _weighted(digits[:12], weights[1:]) % 11
    second = _weighted(digits[:13], weights) % 11
    wanted = "".join("0" if rest < 2 else str(11 - rest) for rest in (first, second))
    return len(digits) == 14 and _varied(digits) and digits[12:] == wanted


def steuer_id(digits: str) -> bool:
    """Germany (ISO 7064, mod 11, 10); some digit is there twice or thrice."""
    product = 10
    for digit in digits[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    repeated = len(set(digits[:10])) in (8, 9)
    return len(digits) == 11 and digits[0] != "0" and repeated and int(digits[10]) == (11 - product) % 10


def nir(number: str) -> bool:
    """France; the departments of Corsica are letters."""
    digits = number.upper().replace("2A", "19").replace("2B", "18")
    return (
        digits.isdigit()
        and len(digits) == 15
        and digits[0] in "12378"
        and int(digits[:13]) % 97 == 97 - int(digits[13:])
    )


def dni(number: str) -> bool:
    """Spain, DNI and NIE."""
    upper = number.upper()
    digits = {"X": "0", "Y": "1", "Z": "2"}.get(upper[0], upper[0]) + upper[1:-1]
    return digits.isdigit() and upper[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(digits) % 23]


def codice_fiscale(code: str) -> bool:
    """Italy."""
    upper = code.upper()
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    places = [int(each) if each.isdigit() else ord(each) - 65 for each in upper[:15]]
    total = sum(odd[place] if index % 2 == 0 else place for index, place in enumerate(places))
    return upper[15] == chr(65 + total % 26)


def bsn(digits: str) -> bool:
    """The Netherlands."""
    return len(digits) == 9 and _varied(digits) and _weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def pesel(digits: str) -> bool:
    """Poland."""
    return len(digits) == 11 and _varied(digits) and _weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def tfn(digits: str) -> bool:
    """Australia, tax file number."""
    weights = (1, 4, 3, 7, 5, 8, 6, 9, 10) if len(digits) == 9 else (10, 7, 8, 4, 6, 3, 5, 1)
    return len(digits) in (8, 9) and _varied(digits) and _weighted(digits, weights) % 11 == 0


def medicare(digits: str) -> bool:
    """Australia, health insurance."""
    weighted = _weighted(digits[:8], (1, 3, 7, 9, 1, 3, 7, 9)) % 10
    return len(digits) in (10, 11) and digits[0] in "23456" and weighted == int(digits[8])


def nhs(digits: str) -> bool:
    """England, health service."""
    check = 11 - _weighted(digits[:9], range(10, 1, -1)) % 11
    return len(digits) == 10 and _varied(digits) and check != 10 and int(digits[9]) == check % 11


def ahv(digits: str) -> bool:
    """Switzerland."""
    return len(digits) == 13 and digits.startswith("756") and -_weighted(digits, (1, 3) * 6) % 10 == int(digits[12])


def hetu(code: str) -> bool:
    """Finland."""
    upper = code.upper()
    return upper[10] == "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(upper[:6] + upper[7:10]) % 31]


def resident_id(code: str) -> bool:
    """China, with a day of birth inside."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    born = "18" <= code[6:8] <= "20" and "01" <= code[10:12] <= "12" and "01" <= code[12:14] <= "31"
    return born and code[17].upper() == "10X98765432"[_weighted(code, weights) % 11]


def rrn(digits: str) -> bool:
    """Korea, with a day of birth inside."""
    check = (11 - _weighted(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return "01" <= digits[2:4] <= "12" and "01" <= digits[4:6] <= "31" and check == int(digits[12])


def nric(code: str) -> bool:
    """Singapore."""
    upper = code.upper()
    total = _weighted(upper[1:8], (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(upper[0], 0)
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "XWUTRQPNLKJ"}.get(upper[0], "XWUTRQPNMLK")
    place = 10 - total % 11 if upper[0] == "M" else total % 11
    return upper[8] == letters[place]


def sa_id(digits: str) -> bool:
    """South Africa, with a day of birth inside."""
    return len(digits) == 13 and "01" <= digits[2:4] <= "12" and "01" <= digits[4:6] <= "31" and luhn(digits)


def ssn(digits: str) -> bool:
    """United States: no check digit, but numbers that were never given out."""
    impossible = digits.startswith(("000", "666", "9")) or digits[3:5] == "00" or digits[5:] == "0000"
    return len(digits) == 9 and not impossible and digits not in _NEVER_ISSUED


_NEVER_ISSUED = frozenset({"078051120", "219099999"})
