"""Coverage-guided fuzzing of everything that reads what strangers write; `python -m tests.fuzz <target> <runs>`."""
