"""Attacks on whole commands: what a certificate promises must survive them.

A command is run many times in processes of its own, and what it releases is searched for whatever
distinguishes neighbouring inputs; canaries bound epsilon from below. Exact games on the mechanisms
are tests of the core.
"""

from secretballot.audit.bounds import clopper_pearson, epsilon_from_guesses
from secretballot.audit.canaries import CanaryAudit, audit_canaries
from secretballot.audit.release_audit import ReleaseAudit, audit_release

__all__ = [
    "CanaryAudit",
    "ReleaseAudit",
    "audit_canaries",
    "audit_release",
    "clopper_pearson",
    "epsilon_from_guesses",
]
