"""The shapes of what the service says, for its OpenAPI document."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from secretballot.service.access import ApiKey


class ProblemDocument(BaseModel):
    """Why a request is refused (RFC 9457)."""

    type: str = Field(description="Address of what it means")
    title: str
    status: int
    detail: str = Field(description="One sentence")
    instance: str = Field(description="Id of the request, which is in the logs")


Cell = float | str | bool | None


class Points(BaseModel, extra="forbid"):
    """Lists of values for teachers of arrays, objects by column for teachers of frames."""

    points: Annotated[list[list[Cell] | dict[str, Cell]], Field(min_length=1)]


class Answer(BaseModel):
    """The answer to one point. An abstention has the same fields."""

    label: str | int | float | bool | None = Field(
        description="Class value; null for an abstention, and where nothing was given"
    )
    given: bool = Field(description="False where the budget was spent before this point came")
    abstained: bool
    noisy_count: int | list[int] | None = Field(description="Where counts are released")


class Answers(BaseModel):
    """The answers to the points of a request, in their order."""

    dataset: str
    session: str
    answers: list[Answer]
    left: int = Field(description="Questions that are still paid for")


class Preview(BaseModel):
    """What asking some points would take."""

    stored: int = Field(description="Points that were asked before: their answers are free")
    new: int = Field(description="New questions: the others, each point once")
    left: int = Field(description="Questions that are still paid for")


class Columns(BaseModel):
    """The columns of points: a frame's names and types, or an array's number of columns."""

    kind: str
    columns: int | list[list[Any]]
    dtype: str | None = None


class Amount(BaseModel):
    """A price in differential privacy."""

    epsilon: float
    delta: float


class Session(BaseModel):
    """The terms of a session and how far it has come."""

    dataset: str
    session: str
    classes: list[str | int | float | bool]
    n_teachers: int
    columns: Columns
    mechanism: dict[str, Any]
    sigma: float | None
    price: Amount
    planned: int
    used: int
    left: int
    closed: bool
    most_points: int = Field(description="Points of one request")


class Check(BaseModel):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


class Verification(BaseModel):
    """Whether a certificate holds by its own words."""

    ok: bool
    signature: str = Field(description="Of a certificate that is shown: none")
    checks: list[Check]
    unchecked: list[str]
    signed_by: str | None = Field(description="Key that signs it when it is downloaded")


class Signature(BaseModel):
    """Whether a release is signed, and by which of the keys that the service publishes."""

    signature: str = Field(description="none, checked, or not checked: by a key not known here")
    key: str | None = Field(description="Fingerprint of the key")


class DatasetDocument(BaseModel):
    """A dataset that the key may be used for."""

    name: str
    title: str
    sessions: list[str]
    plan: bool = Field(description="Whether there is a plan to look at")
    releases: dict[str, list[str]] = Field(description="Files of each release")
    signatures: dict[str, Signature] = Field(description="Who signed each release")


class Budget(BaseModel):
    """What may be spent on a dataset, what is spent, and what is left."""

    dataset: str
    account: str
    unit: str
    relation: str
    composition: str
    releases: int
    budget: Amount
    spent: Amount
    remaining: Amount


class Account(BaseModel):
    """Every reservation of the ledger, oldest first, after all rows were checked."""

    dataset: str
    rows: int
    chain: str
    entries: list[dict[str, Any]]


class AuditRows(BaseModel):
    """Rows of the audit log, oldest first."""

    rows: list[dict[str, Any]]
    next_after: int | None = Field(description="Give as `after` for the next page; null at the end")


class KeyDocument(ApiKey):
    """What the key may do, and what it has asked."""

    datasets: tuple[str, ...] = Field(description="Of this service; may be none")
    asked: dict[str, int] = Field(description="New questions so far, by dataset")
