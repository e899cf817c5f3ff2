"""Sessions behind a service, asked as those of this process are."""

import base64
import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

import numpy as np

from secretballot._validation import check_count, check_name, check_positive, plain_line, shown
from secretballot.accounting import PrivacyBudget
from secretballot.exceptions import (
    BudgetError,
    DataError,
    LedgerError,
    Parameter,
    ParameterError,
    ServiceError,
)
from secretballot.learners.training.inputs import as_matrix, single_point
from secretballot.learners.training.session import SessionAnswer, SessionAnswers
from secretballot.released import ReleasedLabels
from secretballot.report.extras import require_extra

_LONGEST_WAIT_S = 10.0
_AGAIN = (429, 503)


def connect(
    url: str,
    key: str,
    *,
    dataset: str | None = None,
    session: str | None = None,
    timeout: float = 60.0,
    retries: int = 4,
) -> "RemoteSession":
    """Return a session behind a service, to be asked like a `LabelingSession`.

    Parameters
    ----------
    url : str
        Address of the service, such as ``https://labels.example.org``.
    key : str
        API key.
    dataset, session : str, optional
        Which one; may be left out where the key is for one dataset, and for its first session.
    timeout : float
        Seconds that an answer may take.
    retries : int
        How often a request is sent again that did not get through, or that the service put off. A
        question costs once, however often it is sent.

    Returns
    -------
    RemoteSession

    Raises
    ------
    ServiceError
        If the service cannot be reached, or refuses the key; the connection is closed first.
    ParameterError
        If there is no such dataset or session, or several to choose from; likewise.

    Examples
    --------
    >>> try:
    ...     session = sb.connect("http://127.0.0.1:9", "sb_key", retries=0)
    ... except sb.ServiceError as error:
    ...     print(error.status)
    None
    """
    line = _Line(url, key, timeout, retries)
    try:
        address = _chosen_address(line.fetch("GET", "/v1/datasets"), dataset, session)
        return RemoteSession(line, address)
    # nobody else would close it
    except BaseException:
        line.close()
        raise


class RemoteSession:
    """A session behind a service; made by `connect`.

    Answers are those of the session there: a question that was asked before, by anybody, has its
    stored answer and costs nothing.

    Attributes
    ----------
    dataset, request : str
        Names of dataset and session.
    classes : tuple
        Class values.
    n_teachers : int
    sigma : float or None
        Scale of the noise on released counts, in votes.
    price : PrivacyBudget
        Of all questions together.
    columns : dict
        What a point has.
    planned, used, left : int
        Questions paid for, answered so far, and still to be had; the last two are asked of the
        service.

    Examples
    --------
    >>> def label(url, key, X_public):
    ...     with sb.connect(url, key) as session:
    ...         return sb.ask_actively(session, X_public, n_queries=20).released
    >>> isinstance(sb.RemoteSession, type)
    True
    """

    def __init__(self, line: "_Line", address: str) -> None:
        self._line, self._address = line, address
        terms = line.fetch("GET", address)
        self.dataset, self.request = str(terms["dataset"]), str(terms["session"])
        self.classes = tuple(terms["classes"])
        self.n_teachers = int(terms["n_teachers"])
        self.sigma = None if terms["sigma"] is None else float(terms["sigma"])
        self.price = PrivacyBudget(terms["price"]["epsilon"], terms["price"]["delta"])
        self.columns: dict[str, Any] = terms["columns"]
        self.planned = int(terms["planned"])
        self._most_points = int(terms["most_points"])

    def __repr__(self) -> str:
        return f"RemoteSession({self.request!r} of {self.dataset!r}, {self.planned} planned)"

    def __enter__(self) -> "RemoteSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections; the session there goes on."""
        self._line.close()

    def save_certificate(self, folder: str | os.PathLike[str]) -> str | None:
        """Write the certificate of all answers so far into a folder, and the service's signature
        beside it, for ``secretballot verify``.

        Parameters
        ----------
        folder : path
            Takes ``certificate.json`` and, where the service signs, ``certificate.sig``.

        Returns
        -------
        str or None
            What the service says that the key is; take the key itself from elsewhere, or from its
            ``/signing-key``.

        Raises
        ------
        DataError
            If the files cannot be written, or the signature is none.
        ServiceError
            If the service cannot be asked.
        """
        place = Path(folder)
        response = self._line.response("GET", f"{self._address}/certificate")
        signature, problem = response.headers.get("certificate-signature"), ""
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / "certificate.sig").unlink(missing_ok=True)  # of an earlier certificate
            (place / "certificate.json").write_bytes(response.content)
            if signature is not None:
                (place / "certificate.sig").write_bytes(base64.b64decode(signature))
        except (OSError, ValueError) as error:  # what came may be no signature
            problem = getattr(error, "strerror", None) or type(error).__name__
        if problem:
            raise DataError(f"The certificate cannot be written into {place} ({problem}).")
        found = response.headers.get("certificate-key", "")
        return None if signature is None else plain_line(found)

    @property
    def used(self) -> int:
        """Questions answered so far, abstentions included."""
        return int(self._line.fetch("GET", self._address)["used"])

    @property
    def left(self) -> int:
        """Questions still to be had."""
        return int(self._line.fetch("GET", self._address)["left"])

    def ask(self, x: Any) -> SessionAnswer:
        """Return the answer to one point, of shape (n_features,) or a table of one row.

        Raises
        ------
        DataError
            If the point does not fit the teachers.
        BudgetError
            If the point was never asked, and budget or quota are spent.
        ServiceError, LedgerError
            If the service refuses or cannot answer now.
        """
        return self.ask_many(single_point(x)).first

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to the rows of `X`, of shape (n, n_features), while questions are
        left; errors as for `ask`."""
        answers, left, refusal = list[Mapping[str, Any]](), 0, None
        for part in self._parts_of(X):
            try:
                document = self._line.fetch("POST", f"{self._address}/questions", _body_of(part))
                answers += document["answers"]
                left = int(document["left"])
            except BudgetError as error:
                answers += [_NOT_GIVEN] * part.shape[0]
                refusal = error
        given = np.array([answer["given"] for answer in answers], dtype=np.bool_)
        if refusal is not None and not given.any():
            raise refusal
        labels = np.full(len(answers), None, dtype=object)
        labels[:] = [answer["label"] for answer in answers]
        answered = np.array([label is not None for label in labels], dtype=np.bool_)
        return SessionAnswers(labels, answered, given, self._noisy_counts(answers), left)

    def count_new(self, X: Any) -> int:
        """Return how many new questions the rows of `X`, of shape (n, n_features), are; nothing is
        asked. A point that comes again in a further part of a large table is counted again."""
        documents = (
            self._line.fetch("POST", f"{self._address}/preview", _body_of(part))
            for part in self._parts_of(X)
        )
        return sum(int(document["new"]) for document in documents)

    def _parts_of(self, X: Any) -> Iterator[Any]:
        """Yield the rows of a table in parts that one request may hold."""
        table = as_matrix("X", X)
        for start in range(0, table.shape[0], self._most_points):
            yield table[start : start + self._most_points]

    def _noisy_counts(self, answers: Sequence[Mapping[str, Any]]) -> Any:
        if self.sigma is None:
            return None
        nothing = 0 if len(self.classes) == 2 else [0] * len(self.classes)
        counts = [answer["noisy_count"] for answer in answers]
        return np.array([nothing if count is None else count for count in counts], dtype=np.int64)

    def released(self, X: Any) -> ReleasedLabels:
        """Return all answers of the session so far with its certificate, as rows of `X`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points, with all that were asked among them.

        Raises
        ------
        DataError
            If a point that was asked, by whomever, is not in `X`.
        ServiceError, LedgerError
            If the service refuses or cannot answer now.
        """
        body = _body_of(as_matrix("X", X))
        found = self._line.fetch("POST", f"{self._address}/released", body)
        return ReleasedLabels.from_json(found)

    def transcript(self) -> ReleasedLabels:
        """Return all answers of the session so far with its certificate, in the order in which they
        were asked."""
        return ReleasedLabels.from_json(self._line.fetch("GET", f"{self._address}/released"))


#: Means the answer to a point of a request that found everything spent.
_NOT_GIVEN = {"label": None, "given": False, "noisy_count": None}


def _chosen_address(document: Mapping[str, Any], dataset: str | None, session: str | None) -> str:
    """Return the address of a session among those that a key may use.

    Raises
    ------
    ParameterError
        If it is not there, or there are several datasets to choose from.
    """
    sessions = {str(one["name"]): list(map(str, one["sessions"])) for one in document["datasets"]}
    names = ", ".join(map(shown, sessions))
    if dataset is None and len(sessions) != 1:
        raise ParameterError(
            Parameter("dataset"), f" is missing; the key may use {names or 'none'}, so name one."
        )
    name = next(iter(sessions)) if dataset is None else dataset
    if name not in sessions:
        raise ParameterError(
            Parameter("dataset"), f" is {shown(name)}; the key may use {names or 'none'}."
        )
    chosen = sessions[name][0] if session is None else session
    if chosen not in sessions[name]:
        raise ParameterError(
            Parameter("session"),
            f" is {shown(chosen)}; {name} has {', '.join(map(shown, sessions[name]))}.",
        )
    return f"/v1/datasets/{quote(name)}/sessions/{quote(chosen)}"


# --- points as bodies ---


def _body_of(table: Any) -> bytes:
    """Return points, of shape (n, n_features), as the body of a request; missing values as null.

    Raises
    ------
    DataError
        If a cell is neither a number nor a string.
    """
    points: list[Any]
    if hasattr(table, "iloc"):
        columns = {str(name): map(_json_cell, table[name].tolist()) for name in table.columns}
        points = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
    else:
        dense: Any = table.toarray() if hasattr(table, "toarray") else np.asarray(table)
        points = [[_json_cell(cell) for cell in row] for row in dense.tolist()]
    with contextlib.suppress(TypeError, ValueError):
        return json.dumps({"points": points}, allow_nan=False).encode()
    raise DataError(
        "X has cells that cannot be sent, such as infinities or dates; give numbers and strings."
    )


def _json_cell(cell: Any) -> Any:
    item = getattr(cell, "item", None)
    value = item() if callable(item) else cell
    try:
        return None if value is None or value != value else value
    except (TypeError, ValueError):  # a missing value of pandas has no truth
        return None


# --- the line ---


class _Line:
    """How requests are sent, put off and answered."""

    def __init__(self, url: str, key: str, timeout: float, retries: int) -> None:
        check_name("url", url, longest=2000)
        check_name("key", key, longest=2000)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or not key.isascii():
            raise ParameterError(
                Parameter("url"),
                f" is {shown(url)}; give one that begins with http:// or https://.",
            )
        self.url = url.rstrip("/")
        self.retries = check_count("retries", retries, minimum=0)
        self._httpx: Any = require_extra("httpx", "service")
        self._client = self._httpx.Client(
            timeout=check_positive("timeout", timeout),
            headers={"Authorization": f"Bearer {key.strip()}"},
            # an answer that leads elsewhere would take the key there
            follow_redirects=False,
        )

    def fetch(self, method: str, path: str, body: bytes | None = None) -> Mapping[str, Any]:
        """Return the document with which the service answers a request."""
        found, response = None, self.response(method, path, body)
        with contextlib.suppress(ValueError):
            found = response.json()
        if isinstance(found, dict):
            return found
        raise ServiceError("The service answered with no document; check the address.")

    def response(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Return the answer of the service to a request, once it gets through.

        Only what comes of itself is waited for: neither a refusal nor a wrong request.

        Raises
        ------
        BudgetError, DataError, LedgerError, ServiceError
            By the kind of problem.
        """
        headers = {} if body is None else {"Content-Type": "application/json"}
        for attempt in range(self.retries + 1):
            response = None
            with contextlib.suppress(self._httpx.TransportError):
                response = self._client.request(
                    method, f"{self.url}{path}", content=body, headers=headers
                )
            through = response is not None and response.status_code not in _AGAIN
            if through or attempt == self.retries:
                break
            asked = "" if response is None else str(response.headers.get("retry-after", ""))
            seconds = float(asked) if asked.isdecimal() else 0.0
            time.sleep(min(_LONGEST_WAIT_S, max(seconds, 0.1 * 2.0**attempt)))
        if response is None:
            raise ServiceError(
                f"The service at {shown(self.url)} cannot be reached; check the address, or try"
                " later."
            )
        if response.status_code != 200:
            self._refuse(response)
        return response

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    @staticmethod
    def _refuse(response: Any) -> NoReturn:
        found = None
        with contextlib.suppress(ValueError):
            found = response.json()
        about = found if isinstance(found, dict) else {}
        kind = str(about.get("type", "")).rpartition("/")[2]
        # words from elsewhere, which may end up on a terminal
        said = plain_line(str(about.get("detail", "The service gave no reason.")))
        known = {
            "budget-spent": BudgetError,
            "quota-spent": BudgetError,
            "wrong-points": DataError,
            "ledger-unavailable": LedgerError,
        }
        if kind in known:
            raise known[kind](said)
        raise ServiceError(
            f"The service refused with status {response.status_code}: {said}",
            status=response.status_code,
        )
