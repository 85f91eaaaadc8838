"""A history with rows in every table there is."""

from pathlib import Path

from qwed.store.copying.plan import tables
from tests.unit.cli.history import History, ask, hand, made_in

AGENT = "(SELECT agent_id FROM agents ORDER BY rowid LIMIT 1)"
ORGANISATION = "(SELECT organisation_id FROM organisations ORDER BY rowid LIMIT 1)"
ODD = "é \U0001f600 '' \" \\ % %s ? \t\r\n \x01\x7f \\N \\."
MORE = (
    f"INSERT INTO tools VALUES ({ORGANISATION}, '{ODD}', x'00ff')",
    f"INSERT INTO memories VALUES ({AGENT}, '{ODD}', 'hash', 'act_1', x'', 4e9, NULL)",
    f"INSERT INTO memories VALUES ({AGENT}, '', '', '', x'5c78', 1e-300, (SELECT min(subject_id) FROM subjects))",
    f"INSERT INTO webhooks VALUES ({ORGANISATION}, 'u', 'e', 's', 0.1, 9223372036854775807, 0, NULL, '{ODD}', 1)",
    f"INSERT INTO outbox VALUES ('ntc_1', {ORGANISATION}, 'pending', '{{\"principal_id\":\"ops\"}}', 1.5, 2.5, 3)",
    f"INSERT INTO jobs VALUES ('job_1', {ORGANISATION}, 'key', 'owner', 4, 1, 1, 1.5, 4e9, NULL, NULL)",
    "INSERT INTO job_items VALUES ('job_1', 0, 'q', NULL, NULL, 'pending', NULL, NULL, NULL)",
    "INSERT INTO job_items VALUES ('job_1', 1, '', 'sql', '{}', 'completed', 'r', '', 0.25)",
    f"INSERT INTO chains VALUES ({ORGANISATION}, 'chain', 2, 'att_1')",
    f"INSERT INTO message_lists VALUES ({ORGANISATION}, 'blocks', 'a', '')",
    f"INSERT INTO buckets VALUES ({ORGANISATION}, 'pair', 0.1, 1790000000.123457, 1.7976931348623157e308)",
)


def full_house(place: Path) -> History:
    """A few hundred activities of two organisations, and something in every table."""
    history = made_in(place)
    with hand(history.data) as connection:
        for statement in MORE:
            connection.execute(statement)
    empty = [table.name for table in tables() if not ask(history.data, f"SELECT count(*) FROM {table.name}")]
    assert empty == [], "a table without a row would be copied by nobody, and nobody would see it"
    return history
