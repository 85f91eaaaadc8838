"""Instructions to verify a report independently."""

STEPS: tuple[str, ...] = (
    "Get the signing keys of the node, `GET /.well-known/jwks.json`, from a source you trust, and keep them as "
    "jwks.json. The `kid` of this report's log head is one of them.",
    "Get an export of the log, `qwed audit export > log.jsonl`, and save the head of this report (or any earlier head "
    "you were given) as head.json.",
    "Run the verifier, one file that needs nothing else of qwed: "
    "`python verifier.py log.jsonl --head head.json --jwks jwks.json`, or `qwed audit verify --export log.jsonl "
    "--head head.json`. It recomputes every hash, checks every signed head, and ends with 0 if nothing was changed, "
    "removed, inserted or reordered.",
    "Check the first and the last entry of the period alone: SHA-256 over a zero byte and the leaf's text gives the "
    "leaf hash; the audit path leads from it to the root of the signed head (RFC 6962). In the JSON report each of the "
    "two is a receipt that `check_receipt` of verifier.py takes as it is.",
    "Check any other entry with `GET /audit/proof/inclusion?activity_id=act_...`, and an attestation with "
    "`POST /attestation/verify`.",
)
"""Printed in the PDF, and the `verification` member of the JSON."""
