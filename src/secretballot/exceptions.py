"""The error tree: one base class, one leaf for each thing a person can mend.

    SecretBallotError
    |-- ParameterError      a setting is out of range
    |-- DataError           a table, file or array does not fit
    |-- BudgetError         the privacy budget would be broken; nothing was spent
    |-- LedgerError         the ledger cannot be opened, read or trusted
    `-- CertificateError    a certificate does not verify

Messages name what was given, what is allowed and what to do. They never carry a value of the private data.
"""

__all__ = [
    "BudgetError",
    "CertificateError",
    "DataError",
    "LedgerError",
    "ParameterError",
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


class CertificateError(SecretBallotError):
    """A certificate does not verify."""
