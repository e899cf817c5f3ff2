"""What a release shows to the world: certificate, verification, folder, page, saved student."""

from secretballot.report.certificate import build_certificate, certificate_digest, describe_released
from secretballot.report.labels_file import labels_digest
from secretballot.report.verification import Check, Verification, verify_certificate

__all__ = [
    "Check",
    "Verification",
    "build_certificate",
    "certificate_digest",
    "describe_released",
    "labels_digest",
    "verify_certificate",
]
