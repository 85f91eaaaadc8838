"""Month partitions of the activities, created ahead of time.

Nothing depends on them: rows without a partition go into the default one, and move when their partition is created.
"""

from datetime import UTC, datetime, timedelta

import psycopg

from qwed.store.postgres.connect import Connection

MONTHS_AHEAD = 2
"""Months after the current one."""
_LONGEST = timedelta(days=31)
_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def create_month_partitions(connection: Connection, now: float) -> int:
    """Create the missing partitions and return how many were created; in transactions of their own.

    A partition that cannot be locked because of a long read is created later.
    """
    count = 0
    for moment in _due(now):
        try:
            count += create_month_partition(connection, moment)
        except psycopg.errors.LockNotAvailable:
            return count
    return count


def create_month_partition(connection: Connection, moment: float) -> bool:
    """Create the partition of the month that a time is in; return False if it exists."""
    row = connection.execute("SELECT make_month(%s)", (moment,)).fetchone()
    return row is not None and row[0] is True


def _due(now: float) -> list[float]:
    if not 0 <= now < _LATEST:
        return []
    month = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    months = [month.timestamp()]
    for _ in range(MONTHS_AHEAD):
        month = (month + _LONGEST).replace(day=1)
        months.append(month.timestamp())
    return months
