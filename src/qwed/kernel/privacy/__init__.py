"""Privacy: masking and redaction of secrets, encryption per data subject, erasure."""
