"""Check-digit algorithms that distinguish identity numbers from other numbers of the same length."""

from collections.abc import Sequence


def luhn(digits: str) -> bool:
    """Check a number with the Luhn algorithm: payment cards, Canada, Sweden, Israel, South Africa."""
    odd = sum(map(int, digits[-1::-2]))
    return (odd + sum(_DOUBLED[int(digit)] for digit in digits[-2::-2])) % 10 == 0


_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def mod_97(account: str) -> bool:
    """Check an IBAN (ISO 13616)."""
    rearranged = account[4:] + account[:4]
    return int("".join(str(int(character, 36)) for character in rearranged)) % 97 == 1


def verhoeff(digits: str) -> bool:
    """Check an Aadhaar number of India."""
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


def _has_two_digits(digits: str) -> bool:
    return len(set(digits)) > 1


def cpf(digits: str) -> bool:
    """Check a CPF number of Brazil (persons)."""
    first = _weighted(digits, range(10, 1, -1)) * 10 % 11 % 10
    second = _weighted(digits, range(11, 1, -1)) * 10 % 11 % 10
    return len(digits) == 11 and _has_two_digits(digits) and digits[9:] == f"{first}{second}"


def cnpj(digits: str) -> bool:
    """Check a CNPJ number of Brazil (companies)."""
    weights = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
    first = _weighted(digits[:12], weights[1:]) % 11
    second = _weighted(digits[:13], weights) % 11
    expected = "".join("0" if rest < 2 else str(11 - rest) for rest in (first, second))
    return len(digits) == 14 and _has_two_digits(digits) and digits[12:] == expected


def steuer_id(digits: str) -> bool:
    """Check a tax id of Germany (ISO 7064, mod 11, 10); some digit occurs twice or three times."""
    product = 10
    for digit in digits[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    repeated = len(set(digits[:10])) in (8, 9)
    return len(digits) == 11 and digits[0] != "0" and repeated and int(digits[10]) == (11 - product) % 10


def nir(number: str) -> bool:
    """Check a NIR number of France; the departments of Corsica are letters."""
    digits = number.upper().replace("2A", "19").replace("2B", "18")
    return (
        digits.isdigit()
        and len(digits) == 15
        and digits[0] in "12378"
        and int(digits[:13]) % 97 == 97 - int(digits[13:])
    )


def dni(number: str) -> bool:
    """Check a DNI or NIE number of Spain."""
    upper = number.upper()
    digits = {"X": "0", "Y": "1", "Z": "2"}.get(upper[0], upper[0]) + upper[1:-1]
    return digits.isdigit() and upper[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(digits) % 23]


def codice_fiscale(code: str) -> bool:
    """Check a fiscal code of Italy."""
    upper = code.upper()
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    values = [int(character) if character.isdigit() else ord(character) - 65 for character in upper[:15]]
    total = sum(odd[value] if index % 2 == 0 else value for index, value in enumerate(values))
    return upper[15] == chr(65 + total % 26)


def bsn(digits: str) -> bool:
    """Check a BSN number of the Netherlands."""
    return len(digits) == 9 and _has_two_digits(digits) and _weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def pesel(digits: str) -> bool:
    """Check a PESEL number of Poland."""
    return (
        len(digits) == 11 and _has_two_digits(digits) and _weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0
    )


def tfn(digits: str) -> bool:
    """Check a tax file number of Australia."""
    weights = (1, 4, 3, 7, 5, 8, 6, 9, 10) if len(digits) == 9 else (10, 7, 8, 4, 6, 3, 5, 1)
    return len(digits) in (8, 9) and _has_two_digits(digits) and _weighted(digits, weights) % 11 == 0


def medicare(digits: str) -> bool:
    """Check a Medicare number of Australia."""
    weighted = _weighted(digits[:8], (1, 3, 7, 9, 1, 3, 7, 9)) % 10
    return len(digits) in (10, 11) and digits[0] in "23456" and weighted == int(digits[8])


def nhs(digits: str) -> bool:
    """Check an NHS number of England."""
    check = 11 - _weighted(digits[:9], range(10, 1, -1)) % 11
    return len(digits) == 10 and _has_two_digits(digits) and check != 10 and int(digits[9]) == check % 11


def ahv(digits: str) -> bool:
    """Check an AHV number of Switzerland."""
    return len(digits) == 13 and digits.startswith("756") and -_weighted(digits, (1, 3) * 6) % 10 == int(digits[12])


def hetu(code: str) -> bool:
    """Check a personal identity code of Finland."""
    upper = code.upper()
    return upper[10] == "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(upper[:6] + upper[7:10]) % 31]


def resident_id(code: str) -> bool:
    """Check a resident id of China, which contains a date of birth."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    born = "18" <= code[6:8] <= "20" and "01" <= code[10:12] <= "12" and "01" <= code[12:14] <= "31"
    return born and code[17].upper() == "10X98765432"[_weighted(code, weights) % 11]


def rrn(digits: str) -> bool:
    """Check a resident number of Korea, which contains a date of birth."""
    check = (11 - _weighted(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return "01" <= digits[2:4] <= "12" and "01" <= digits[4:6] <= "31" and check == int(digits[12])


def nric(code: str) -> bool:
    """Check an NRIC number of Singapore."""
    upper = code.upper()
    total = _weighted(upper[1:8], (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(upper[0], 0)
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "XWUTRQPNLKJ"}.get(upper[0], "XWUTRQPNMLK")
    index = 10 - total % 11 if upper[0] == "M" else total % 11
    return upper[8] == letters[index]


def sa_id(digits: str) -> bool:
    """Check an id number of South Africa, which contains a date of birth."""
    return len(digits) == 13 and "01" <= digits[2:4] <= "12" and "01" <= digits[4:6] <= "31" and luhn(digits)


def ssn(digits: str) -> bool:
    """Check a social security number of the United States; it has no check digit, but some numbers are never issued."""
    impossible = digits.startswith(("000", "666", "9")) or digits[3:5] == "00" or digits[5:] == "0000"
    return len(digits) == 9 and not impossible and digits not in _NEVER_ISSUED


_NEVER_ISSUED = frozenset({"078051120", "219099999"})
