"""What a pickled learner keeps: its settings and what was released, and nothing of the place
where it was fitted."""

from typing import Any

from secretballot._public_state import PublicState


class LearnerState(PublicState):
    """State of an estimator that learns by releases.

    A pickle keeps parameters, released values, certificate and student. It leaves out the
    `progress` callable, and once the learner is fitted also the path of its `vault`. A `ledger`
    stays a handle: the path of the account and its name.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        left_out = ("progress", "vault") if "student_" in state else ("progress",)
        return state | {name: None for name in left_out if name in state}
