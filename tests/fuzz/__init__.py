"""Coverage-guided fuzzing of every parser of untrusted input; `python -m tests.fuzz <target> <runs>`."""
