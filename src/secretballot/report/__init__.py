"""What a release shows to the world: certificate, verification, folder, page, saved student."""

from secretballot.report.student_load import load_student
from secretballot.report.verification import Check, Verification, verify_certificate

__all__ = ["Check", "Verification", "load_student", "verify_certificate"]
