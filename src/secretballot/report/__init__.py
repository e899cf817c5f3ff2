"""What a release shows to the world: certificate, verification, folder, page, saved student."""

from secretballot.report.certificate.verify import Check, Verification, verify_certificate
from secretballot.report.student.load import load_student

__all__ = ["Check", "Verification", "load_student", "verify_certificate"]
