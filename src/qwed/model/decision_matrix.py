"""The two decision matrices of the specification."""

from qwed.model.decision import Decision, Risk, Status, Trust

APPROVED, CORRECTED, PENDING, DENIED = Decision.APPROVED, Decision.CORRECTED, Decision.PENDING, Decision.DENIED
LOW, MEDIUM, HIGH, CRITICAL = Risk.LOW, Risk.MEDIUM, Risk.HIGH, Risk.CRITICAL

# fmt: off
TRUST_MATRIX: dict[Trust, dict[Risk, Decision]] = {
    # Guide, Decision matrix  LOW            MEDIUM            HIGH            CRITICAL
    Trust.UNTRUSTED:  {LOW: PENDING,  MEDIUM: DENIED,   HIGH: DENIED,   CRITICAL: DENIED},
    Trust.SUPERVISED: {LOW: APPROVED, MEDIUM: PENDING,  HIGH: DENIED,   CRITICAL: DENIED},
    Trust.AUTONOMOUS: {LOW: APPROVED, MEDIUM: APPROVED, HIGH: PENDING,  CRITICAL: DENIED},
    Trust.TRUSTED:    {LOW: APPROVED, MEDIUM: APPROVED, HIGH: APPROVED, CRITICAL: APPROVED},
}

STATUS_MATRIX: dict[Status, dict[Risk, Decision]] = {
    # Spec 2.3, Decision matrix; "High" is everything above low
    Status.VERIFIED:  {LOW: APPROVED,  MEDIUM: APPROVED, HIGH: APPROVED, CRITICAL: APPROVED},
    Status.FAILED:    {LOW: DENIED,    MEDIUM: DENIED,   HIGH: DENIED,   CRITICAL: DENIED},
    Status.CORRECTED: {LOW: CORRECTED, MEDIUM: PENDING,  HIGH: PENDING,  CRITICAL: PENDING},
    Status.UNCERTAIN: {LOW: PENDING,   MEDIUM: PENDING,  HIGH: PENDING,  CRITICAL: PENDING},
    Status.BLOCKED:   {LOW: DENIED,    MEDIUM: DENIED,   HIGH: DENIED,   CRITICAL: DENIED},
    Status.ERROR:     {LOW: DENIED,    MEDIUM: DENIED,   HIGH: DENIED,   CRITICAL: DENIED},
}
# fmt: on
