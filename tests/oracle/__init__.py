"""Oracle by execution: commands, statements and programs are run in a sandbox, and what happened is compared with what
the classifiers predicted."""
