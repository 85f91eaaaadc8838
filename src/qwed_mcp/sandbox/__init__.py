"""Where code that is run for an agent runs: with no network, no secret, no other job and no host file."""
