"""What a release shows to the world: certificate, verification, folder, page, saved student."""

from secretballot.report.certificate.build import certificate_digest, describe_released
from secretballot.report.certificate.labels_file import labels_digest
from secretballot.report.certificate.verify import Check, Verification, verify_certificate
from secretballot.report.student.load import load_student

__all__ = [
    "Check",
    "Verification",
    "certificate_digest",
    "describe_released",
    "labels_digest",
    "load_student",
    "verify_certificate",
]
