"""Several servers on one address: a supervisor, and what each of its workers is told."""
