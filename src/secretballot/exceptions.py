"""The error tree: one base class, one leaf for each thing a person can fix.

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

A message is built of parts, so that a front end with other names for the same settings, such as the
command line, can put its own in their place without looking into the sentence:

    ParameterError(Parameter("tau"), f" is {tau}; use one above 0, or ", Argument("kind", "any"))
"""

from secretballot.core.errors import (
    Argument,
    BudgetError,
    DataError,
    LedgerError,
    Parameter,
    ParameterError,
    ResourceError,
    SamplerError,
    SecretBallotError,
)

__all__ = [
    "Argument",
    "BudgetError",
    "CertificateError",
    "DataError",
    "LedgerError",
    "Parameter",
    "ParameterError",
    "ResourceError",
    "SamplerError",
    "SecretBallotError",
    "ServiceError",
    "UnpricedFitWarning",
]


class ServiceError(SecretBallotError):
    """A service cannot be reached, or refuses the key or the request.

    Attributes
    ----------
    status : int or None
        The status of its answer; None where there was none.

    Examples
    --------
    >>> try:
    ...     sb.connect("http://127.0.0.1:9", "sb_none")
    ... except sb.ServiceError as error:
    ...     print(error.status)
    None
    """

    def __init__(self, *parts: str | Parameter | Argument, status: int | None = None) -> None:
        super().__init__(*parts)
        self.status = status


class CertificateError(SecretBallotError):
    """A certificate does not verify.

    Examples
    --------
    >>> issubclass(sb.CertificateError, sb.SecretBallotError)
    True
    """


class UnpricedFitWarning(UserWarning):
    """scikit-learn fits a learner as a part of something of which no certificate states the whole
    price: a pipeline, or, without a ledger, a search.

    It comes before anything is spent: ``warnings.simplefilter("error", UnpricedFitWarning)`` stops
    the fit.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> learner = sb.RecordMomentsClassifier(epsilon=1.0, delta=1e-6)
    >>> pipeline = make_pipeline("passthrough", learner)
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     given = {f"{pipeline.steps[-1][0]}__classes": [0, 1]}
    ...     pipeline = pipeline.fit(X, (X[:, 0] > 0).astype(int), **given)
    >>> [warning.category.__name__ for warning in seen]
    ['UnpricedFitWarning']
    """
