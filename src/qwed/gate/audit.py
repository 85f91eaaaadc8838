"""The verbs of a Gate that show the log and prove what stands in it."""

from qwed.gate.holder import Holder
from qwed.gate.reply import GateError, Reply, told
from qwed.kernel.proving import audit
from qwed.words import ErrorCode


class AuditVerbs(Holder):
    """INTERFACES 4, in process: the log of the first organisation."""

    def audit_head(self) -> Reply:
        """How the log stands, signed."""
        return Reply(audit.newest_head(self._owner.organisation_id, self.services))

    def audit_entries(self, from_index: int = 0, limit: int = 100) -> Reply:
        """Leaves from an index on, at most 1000; `next_index` is where the next page begins."""
        return Reply(told(audit.log_entries(self._owner.organisation_id, from_index, limit, self.services)))

    def audit_inclusion(
        self, index: int | None = None, *, activity_id: str | None = None, size: int | None = None
    ) -> Reply:
        """That a leaf stands in the log of this size; of the newest head, where none is given."""
        wanted = index if activity_id is None else activity_id
        if wanted is None or None not in (index, activity_id):
            raise GateError(ErrorCode.BAD_OPTION.code, "give `index` or `activity_id`, one of the two")
        return Reply(told(audit.prove_inclusion(self._owner.organisation_id, wanted, size, self.services)))

    def audit_consistency(self, from_size: int, to_size: int | None = None) -> Reply:
        """That the log of the first size is the beginning of the log of the second."""
        return Reply(told(audit.prove_consistency(self._owner.organisation_id, from_size, to_size, self.services)))
