"""Names of the stages that a request reports, in their order (`tests/unit/kernel/test_pipeline.py`)."""

ADMISSION = ("load", "admit")
ASSESSMENT = ("check_permissions", "run_engine", "assess_risk", "decide")
DECISION = (*ADMISSION, "reserve", *ASSESSMENT, "commit")
"""Stages of a decision until it is durable."""
ANSWER = ("attest", "answer")
MESSAGE = ("judge", *ADMISSION, "reserve", "commit")
"""Stages of a message of a registered agent until its verdict is durable."""
