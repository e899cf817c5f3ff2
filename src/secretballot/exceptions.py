"""The error tree: one base class, one leaf for each thing a person can mend.

    SecretBallotError
    |-- ParameterError      a setting is out of range
    |-- DataError           a table, file or array does not fit
    |-- BudgetError         the privacy budget would be broken; nothing was spent
    |-- LedgerError         the ledger cannot be opened, read or trusted
    |-- SamplerError        exact noise cannot be drawn by the installed software; nothing was drawn
    |-- ResourceError       memory, files or processes ran out, and the run ended
    `-- CertificateError    a certificate does not verify

Messages name what was given, what is allowed and what to do. They never carry a value of the
private data.
"""

__all__ = [
    "BudgetError",
    "CertificateError",
    "DataError",
    "LedgerError",
    "ParameterError",
    "ResourceError",
    "SamplerError",
    "SecretBallotError",
]


class SecretBallotError(Exception):
    """Base class of every error that the package raises on purpose."""


class ParameterError(SecretBallotError, ValueError):
    """A parameter is out of its range."""


class DataError(SecretBallotError, ValueError):
    """A table, file or array does not fit; the message names places, never private values."""


class BudgetError(SecretBallotError):
    """The release would exceed the privacy budget; nothing was drawn."""


class LedgerError(SecretBallotError):
    """The ledger cannot be opened, read or trusted."""


class ResourceError(SecretBallotError):
    """Memory, files or processes ran out; the run ended, since all shards together may have
    caused it."""


class SamplerError(SecretBallotError):
    """Exact noise cannot be drawn: OpenDP is missing, broken, or draws wrong noise; nothing was
    drawn."""


class CertificateError(SecretBallotError):
    """A certificate does not verify."""
