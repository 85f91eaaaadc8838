"""A data directory with rows in every table."""

from pathlib import Path

from qwed.store.copy.plan import tables
from tests.unit.cli.history import History, create_history, open_database, query_value

AGENT = "(SELECT agent_id FROM agents ORDER BY rowid LIMIT 1)"
ORGANISATION = "(SELECT organisation_id FROM organisations ORDER BY rowid LIMIT 1)"
SUBJECT = "(SELECT min(subject_id) FROM subjects)"
WAITING = "(SELECT min(approval_id) FROM approvals WHERE state = 'pending' AND kind = 'action')"
ODD = "é \U0001f600 '' \" \\ % %s ? \t\r\n \x01\x7f \\N \\."
EXTRA_ROWS = (
    f"INSERT INTO tools VALUES ({ORGANISATION}, '{ODD}', x'00ff')",
    f"INSERT INTO idempotency_keys VALUES ({AGENT}, '{ODD}', 'hash', 'act_1', x'', 4e9, NULL)",
    f"INSERT INTO idempotency_keys VALUES ({AGENT}, '', '', '', x'5c78', 1e-300, {SUBJECT})",
    f"INSERT INTO webhooks VALUES ({ORGANISATION}, 'u', 'e', 's', 0.1, 9223372036854775807, 0, NULL, '{ODD}', 1)",
    f"INSERT INTO outbox VALUES ('ntc_1', {ORGANISATION}, 'pending', '{{\"principal_id\":\"ops\"}}', 1.5, 2.5, 3)",
    f"INSERT INTO jobs VALUES ('job_1', {ORGANISATION}, 'key', 'owner', 4, 1, 1, 1.5, 4e9, NULL, NULL)",
    "INSERT INTO job_items VALUES ('job_1', 0, 'q', NULL, NULL, 'pending', NULL, NULL, NULL)",
    "INSERT INTO job_items VALUES ('job_1', 1, '', 'sql', '{}', 'completed', 'r', '', 0.25)",
    f"INSERT INTO attestation_chains VALUES ({ORGANISATION}, 'chain', 2, 'att_1')",
    f"INSERT INTO message_lists VALUES ({ORGANISATION}, 'blocks', 'a', '')",
    f"INSERT INTO usage_series VALUES ({AGENT}, '{ODD}', '', '{'9' * 60}.5', '0', 9223372036854775807)",
    f"INSERT INTO usage_entries VALUES ({AGENT}, '{ODD}', '', 9223372036854775807, '1E-20')",
    f"INSERT INTO usage_series VALUES ({ORGANISATION}, '', 'amount', '0', '0.10', 0)",
    f"INSERT INTO usage_holds VALUES ({WAITING}, {ORGANISATION}, '', 'amount', '0.10')",
    f"INSERT INTO token_buckets VALUES ({ORGANISATION}, 'pair', 0.1, 1790000000.123457, 1.7976931348623157e308)",
)


def create_full_history(directory: Path) -> History:
    """Create a few hundred activities of two organisations and at least one row in every table."""
    history = create_history(directory)
    with open_database(history.data) as connection:
        for statement in EXTRA_ROWS:
            connection.execute(statement)
    empty = [table.name for table in tables() if not query_value(history.data, f"SELECT count(*) FROM {table.name}")]
    assert empty == [], "the copy of an empty table would not be tested"
    return history
