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

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Parameter:
    """The name of a parameter, as a part of a message.

    Examples
    --------
    >>> from secretballot.exceptions import Parameter
    >>> print(Parameter("n_teachers"))
    n_teachers
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Argument:
    """A parameter with its value, as a part of a message.

    Examples
    --------
    >>> from secretballot.exceptions import Argument
    >>> print(Argument("release", "labels"))
    release='labels'
    """

    name: str
    value: str | int | float

    def __str__(self) -> str:
        return f"{self.name}={self.value!r}"


class SecretBallotError(Exception):
    """Base class of every error that the package raises on purpose.

    Parameters
    ----------
    *parts : str, Parameter or Argument
        The message, in parts that are joined as they are. Only a `Parameter` or `Argument` names a
        parameter; text never does, whatever was quoted in it.

    Attributes
    ----------
    parts : tuple of str, Parameter and Argument
    parameter : str or None
        Name of the parameter that is at fault.

    Examples
    --------
    >>> try:
    ...     sb.PrivacyBudget(0.0, 1e-6)
    ... except sb.SecretBallotError as error:
    ...     print(error)
    epsilon is 0.0; it must be a positive, finite number.
    """

    def __init__(self, *parts: str | Parameter | Argument) -> None:
        super().__init__("".join(map(str, parts)))
        self.parts = parts

    def __reduce__(self) -> tuple[object, ...]:
        # the default would rebuild the error, as it comes from a worker, of its sentence alone
        return type(self), self.parts, self.__dict__

    @property
    def parameter(self) -> str | None:
        """Name of the parameter that is at fault: the first that the message names, if any."""
        return next((part.name for part in self.parts if isinstance(part, Parameter)), None)


class ParameterError(SecretBallotError, ValueError):
    """A parameter is out of its range; `parameter` is its name, where the fault is one parameter's.

    Examples
    --------
    >>> try:
    ...     sb.PrivacyBudget(1.0, delta=2.0)
    ... except sb.ParameterError as error:
    ...     print(error.parameter)
    ...     print(error)
    delta
    delta is 2.0; it must be at least 0 and less than 1.
    """


class DataError(SecretBallotError, ValueError):
    """A table, file or array does not fit; the message names places, never private values.

    Examples
    --------
    >>> try:
    ...     sb.VoteCounts.from_counts([[3, 2], [4, 2]])
    ... except sb.DataError as error:
    ...     print(type(error).__name__)
    DataError
    """


class BudgetError(SecretBallotError):
    """The release would exceed the privacy budget; nothing was drawn.

    Examples
    --------
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(0.5, 0.0))
    >>> votes = sb.VoteCounts.from_counts([[3, 97]])
    >>> try:
    ...     sb.estimate_stability(votes, ledger, fraction=0.1, epsilon=1.0)
    ... except sb.BudgetError:
    ...     print(ledger.spent().epsilon)
    0.0
    """


class LedgerError(SecretBallotError):
    """The ledger cannot be opened, read or trusted.

    Examples
    --------
    >>> try:
    ...     sb.Ledger.open_existing("missing.ledger")
    ... except sb.LedgerError as error:
    ...     print(type(error).__name__)
    LedgerError
    """


class ResourceError(SecretBallotError):
    """Memory, files or processes ran out.

    The run ended, since all shards together may have caused it.

    Examples
    --------
    >>> issubclass(sb.ResourceError, sb.SecretBallotError)
    True
    """


class SamplerError(SecretBallotError):
    """Exact noise cannot be drawn: OpenDP is missing, broken, or draws wrong noise.

    Nothing was drawn.

    Examples
    --------
    >>> issubclass(sb.SamplerError, sb.SecretBallotError)
    True
    """


class ServiceError(SecretBallotError):
    """A service cannot be reached, or refuses the key or the request.

    Attributes
    ----------
    status : int or None
        The status of its answer; None where there was none.

    Examples
    --------
    >>> try:
    ...     sb.connect("http://127.0.0.1:9", "sb_none", retries=0)
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
    >>> learner = sb.LabelPrivateMomentsClassifier(budget=sb.PrivacyBudget(1.0, 1e-6))
    >>> pipeline = make_pipeline("passthrough", learner)
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     given = {f"{pipeline.steps[-1][0]}__classes": [0, 1]}
    ...     pipeline = pipeline.fit(X, (X[:, 0] > 0).astype(int), **given)
    >>> [warning.category.__name__ for warning in seen]
    ['UnpricedFitWarning']
    """
