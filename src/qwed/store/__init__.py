"""Store of the kernel: one interface, implemented for SQLite and PostgreSQL."""
