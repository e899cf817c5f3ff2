"""Sessions behind a service, asked as those of this process are, point by point or a file at a
time."""

import base64
import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import pandas as pd

from secretballot._typing import Json, JsonView, Place
from secretballot._validation import (
    check_name,
    check_positive,
    plain_line,
    refusal,
    require_extra,
    shown,
)
from secretballot.accounting import PrivacyBudget
from secretballot.data.reading import read_table
from secretballot.exceptions import BudgetError, DataError, LedgerError, ServiceError
from secretballot.learners.inputs import as_matrix, object_array, single_point
from secretballot.learners.session import SessionAnswers
from secretballot.released import ReleasedLabels
from secretballot.runs.folder import write_files

_LONGEST_WAIT_S = 10.0
_AGAIN, _TRIES = (429, 503), 5
#: What a problem is for a session of this process; any other is a `ServiceError`.
_ERRORS = {
    "budget-spent": BudgetError,
    "quota-spent": BudgetError,
    "wrong-points": DataError,
    "ledger-unavailable": LedgerError,
}


def connect(
    url: str,
    key: str,
    *,
    dataset: str | None = None,
    session: str | None = None,
    timeout: float = 60.0,
) -> "RemoteSession":
    """Return a session behind a service, to be asked like a `LabelingSession`.

    A request that does not get through, or that the service puts off, is sent again a few times: a
    question costs once, however often it is sent.

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

    Returns
    -------
    RemoteSession

    Raises
    ------
    ServiceError
        If the service cannot be reached, refuses the key, or has no such session; the connection is
        closed first.
    ParameterError
        If there is no such dataset, or several to choose from; likewise.

    Examples
    --------
    >>> try:
    ...     session = sb.connect("http://127.0.0.1:9", "sb_key")
    ... except sb.ServiceError as error:
    ...     print(error.status)
    None
    """
    check_name("url", url, longest=2000)
    if not (isinstance(key, str) and key.strip().isascii() and key.strip().isprintable()):
        # the key itself is never shown
        raise refusal("key", " is no key; give the one line that was printed.")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise refusal("url", f" is {shown(url)}; give one that begins with http:// or https://.")
    client = _client_of(url, key, check_positive("timeout", timeout))
    try:
        address = _chosen_address(_fetched(client, "/v1/datasets"), dataset, session)
        return RemoteSession(client, address)
    # nobody else would close it
    except BaseException:
        client.close()
        raise


def _client_of(url: str, key: str, timeout: float) -> Any:
    return require_extra("httpx", "service").Client(
        base_url=url,
        timeout=timeout,
        headers={"Authorization": f"Bearer {key.strip()}"},
        # an answer that leads elsewhere would take the key there
        follow_redirects=False,
    )


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
    ...         return sb.ask_actively(session, X_public, n_queries=20)
    >>> isinstance(sb.RemoteSession, type)
    True
    """

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        terms = self._fetched()
        self.dataset, self.request = terms["dataset"], terms["session"]
        self.classes, self.columns = tuple(terms["classes"]), terms["columns"]
        self.n_teachers, self.sigma = terms["n_teachers"], terms["sigma"]
        self.planned, self._most_points = terms["planned"], terms["most_points"]
        self.price = PrivacyBudget(terms["price"]["epsilon"], terms["price"]["delta"])

    def __repr__(self) -> str:
        return f"RemoteSession({self.request!r} of {self.dataset!r}, {self.planned} planned)"

    def __enter__(self) -> "RemoteSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections; the session there goes on."""
        self._client.close()

    def save_certificate(self, folder: Place) -> str | None:
        """Write the certificate of all answers so far into a folder, and the service's signature
        beside it, for ``secretballot verify``.

        Parameters
        ----------
        folder : path
            Takes ``certificate.json`` and, where the service signs, ``certificate.sig``.

        Returns
        -------
        str or None
            What the service says that the key is; take the key itself from elsewhere.

        Raises
        ------
        DataError
            If the files cannot be written.
        ServiceError
            If the service cannot be asked.
        """
        place = Path(folder)
        response = _response(self._client, f"{self._address}/certificate")
        signature = response.headers.get("certificate-signature")
        contents = {"certificate.json": response.content}
        if signature is None:
            (place / "certificate.sig").unlink(missing_ok=True)  # of an earlier certificate
        else:
            contents["certificate.sig"] = base64.b64decode(signature)
        write_files(place, contents)
        return None if signature is None else plain_line(response.headers["certificate-key"])

    @property
    def used(self) -> int:
        """Questions answered so far, abstentions included."""
        return int(self._fetched()["used"])

    @property
    def left(self) -> int:
        """Questions still to be had."""
        return int(self._fetched()["left"])

    def ask(self, x: Any) -> SessionAnswers:
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
        return self.ask_many(single_point(x))

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to the rows of `X`, of shape (n, n_features), while questions are
        left; errors as for `ask`."""
        answers, left, refusal = list[JsonView](), 0, None
        for part in self._parts_of(X):
            try:
                document = self._fetched("/questions", part)
                answers += document["answers"]
                left = int(document["left"])
            except BudgetError as error:
                answers += [_NOT_GIVEN] * part.shape[0]
                refusal = error
        given = np.array([answer["given"] for answer in answers], dtype=np.bool_)
        if refusal is not None and not given.any():
            raise refusal
        labels = object_array([answer["label"] for answer in answers])
        answered = np.array([label is not None for label in labels], dtype=np.bool_)
        return SessionAnswers(labels, answered, given, self._noisy_counts(answers), left)

    def count_new(self, X: Any) -> int:
        """Return how many new questions the rows of `X`, of shape (n, n_features), are; nothing is
        asked. A point that comes again in a further part of a large table is counted again."""
        return sum(int(self._fetched("/preview", part)["new"]) for part in self._parts_of(X))

    def _parts_of(self, X: Any) -> Iterator[Any]:
        """Yield the rows of a table in parts that one request may hold."""
        table = as_matrix("X", X)
        for start in range(0, table.shape[0], self._most_points):
            yield table[start : start + self._most_points]

    def _noisy_counts(self, answers: Sequence[JsonView]) -> Any:
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
        return ReleasedLabels.from_json(self._fetched("/released", as_matrix("X", X)))

    def _fetched(self, what: str = "", points: Any = None) -> JsonView:
        return _fetched(self._client, f"{self._address}{what}", points)


#: Means the answer to a point of a request that found everything spent.
_NOT_GIVEN = {"label": None, "given": False, "noisy_count": None}


def _chosen_address(document: JsonView, dataset: str | None, session: str | None) -> str:
    """Return the address of a session among those that a key may use.

    Raises
    ------
    ParameterError
        If the dataset is not there, or there are several to choose from.
    """
    sessions = {str(one["name"]): list(map(str, one["sessions"])) for one in document["datasets"]}
    name = next(iter(sessions)) if dataset is None and len(sessions) == 1 else dataset
    if name not in sessions:
        names = ", ".join(map(shown, sessions)) or "none"
        raise refusal("dataset", f" is {shown(dataset)}; name one that the key may use: {names}.")
    chosen = sessions[name][0] if session is None else session
    return f"/v1/datasets/{quote(name)}/sessions/{quote(chosen, safe='')}"


# --- requests ---


def _body_of(table: Any) -> bytes:
    """Return points, of shape (n, n_features), as the body of a request; missing values as null.

    Raises
    ------
    DataError
        If a cell is neither a number nor a string.
    """
    by_name = hasattr(table, "iloc")
    frame = table if by_name else pd.DataFrame(getattr(table, "toarray", lambda: table)())
    cells = frame.astype(object).where(frame.notna(), None)
    points = cells.to_dict("records") if by_name else cells.to_dict("split")["data"]
    with contextlib.suppress(TypeError, ValueError):
        return json.dumps({"points": points}, allow_nan=False).encode()
    raise DataError(
        "X has cells that cannot be sent, such as infinities or dates; give numbers and strings."
    )


def _fetched(client: Any, path: str, points: Any = None) -> JsonView:
    """Return the document with which a service answers a request."""
    found = _document_in(_response(client, path, points))
    if not found:
        raise ServiceError("The service answered with no document; check the address.")
    return found


def _document_in(response: Any) -> Json:
    """Return the JSON object of an answer, empty where there is none."""
    found = None
    with contextlib.suppress(ValueError):
        found = response.json()
    return found if isinstance(found, dict) else {}


def _response(client: Any, path: str, points: Any = None) -> Any:
    """Return the answer of a service to a request, with points or without, once it gets through.

    Only what comes of itself is waited for: neither a refusal nor a wrong request.

    Raises
    ------
    BudgetError, DataError, LedgerError, ServiceError
        By the kind of problem.
    """
    given: Json = {"method": "GET", "url": path}
    if points is not None:
        given |= {"method": "POST", "content": _body_of(points)}
        given["headers"] = {"Content-Type": "application/json"}
    transport_error = require_extra("httpx", "service").TransportError
    for attempt in range(_TRIES):
        response = None
        with contextlib.suppress(transport_error):
            response = client.request(**given)
        if response is not None and response.status_code not in _AGAIN:
            break
        if attempt < _TRIES - 1:
            asked = "" if response is None else response.headers.get("retry-after", "")
            seconds = float(asked) if asked.isdecimal() else 0.0
            time.sleep(min(_LONGEST_WAIT_S, max(seconds, 0.1 * 2.0**attempt)))
    if response is None:
        raise ServiceError(
            f"The service at {shown(str(client.base_url))} cannot be reached; check the address, or"
            " try later."
        )
    if response.status_code != 200:
        raise _error_of(response)
    return response


def _error_of(response: Any) -> Exception:
    about = _document_in(response)
    # words from elsewhere, which may end up on a terminal
    said = plain_line(str(about.get("detail", "The service gave no reason.")))
    error = _ERRORS.get(str(about.get("type", "")).rpartition("/")[2])
    if error is not None:
        return error(said)
    status = response.status_code
    return ServiceError(f"The service refused with status {status}: {said}", status=status)


def points_of_file(path: Path, session: RemoteSession) -> Any:
    """Return the rows of a CSV or Parquet file as points of a session.

    Teachers of frames take their columns by name, and others are left out; teachers of arrays take
    all columns of the file, in its order. Where columns are missing, or cells are no numbers, the
    service says so.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    frame = read_table(path, role="file of points").replace("", None)
    columns = session.columns
    if columns["kind"] == "frame":
        kinds = {name: kind for name, kind, _ in columns["columns"] if name in frame.columns}
        frame = frame[[*kinds]]
    else:
        kinds = dict.fromkeys(frame.columns, columns["dtype"])
    for name, kind in kinds.items():
        if pd.api.types.is_numeric_dtype(kind):
            with contextlib.suppress(TypeError, ValueError):
                frame[name] = frame[name].astype(np.float64)
    return frame if columns["kind"] == "frame" else frame.to_numpy()


def answers_table(answers: SessionAnswers, classes: Sequence[Any]) -> pd.DataFrame:
    """Return answers as a table with one row for each point, in their order."""
    table = pd.DataFrame(
        {
            "row": np.arange(len(answers.labels)),
            "label": pd.Series(answers.labels, dtype=object),
            "abstained": answers.given & ~answers.answered,
            "given": answers.given,
        }
    )
    if answers.noisy_counts is not None:
        counts = answers.noisy_counts.reshape(len(table), -1)
        # of two classes the count of the second alone is released
        names = [f"noisy_count_{name}" for name in classes[-counts.shape[1] :]]
        cells = pd.DataFrame(counts, columns=names).astype(object)
        table = table.join(cells.where(answers.given[:, None], None))
    return table
