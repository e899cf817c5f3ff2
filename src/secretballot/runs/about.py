"""What a curator says of a release in words: what the data are, why, who answers for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from secretballot._validation import name_part, shown
from secretballot.exceptions import ParameterError
from secretballot.runs.progress import Watch

_LONGEST = 500  # characters; what is longer is no name, and no page shows it well


@dataclass(frozen=True)
class About:
    """What stands in the report in the curator's words. All of it is public.

    Attributes
    ----------
    title : str or None
        What people call the data; None leaves the dataset's name in the ledger.
    purpose : str or None
        Why the release is made. It stands in the ledger, too.
    controller, contact : str or None
        Who answers for the data, and how to reach somebody.
    """

    title: str | None = None
    purpose: str | None = None
    controller: str | None = None
    contact: str | None = None

    @property
    def on_certificate(self) -> dict[str, str]:
        """Return what is written when the release is; the purpose is there since the payment."""
        named = {"title": self.title, "controller": self.controller, "contact": self.contact}
        return {key: value for key, value in named.items() if value is not None}


#: Of a run whose curator said nothing.
NOTHING_SAID = About()


def check_about(about: About) -> None:
    """Refuse words that are no line that can be shown.

    Raises
    ------
    ParameterError
        Naming the first of them.
    """
    for name, value in vars(about).items():
        if value is None:
            continue
        if not (isinstance(value, str) and value.strip() and value.isprintable()):
            raise ParameterError(
                name_part(name), f" is {shown(value)}; give words on one line, or leave it out."
            )
        if len(value) > _LONGEST:
            raise ParameterError(
                name_part(name),
                f" has {len(value):,} characters; at most {_LONGEST} are shown, so say it shorter.",
            )


def with_words(settings: Mapping[str, Any], about: About) -> dict[str, Any]:
    """Return the settings of a run with what was said of it.

    What was not said is left out, as of runs that were begun before it could be.
    """
    described = {name: value for name, value in settings.items() if name != "about"}
    if about.purpose is not None:
        described["purpose"] = about.purpose
    if about.on_certificate:
        described["about"] = about.on_certificate
    return described


def note_missing_words(about: About, dataset: str, without: tuple[str, ...], watch: Watch) -> None:
    """Tell the curator which words a reader of the report will miss."""
    missing = [name for name, value in vars(about).items() if value is None]
    if not missing or "report" in without:
        return
    named = f"calls the data {shown(dataset)}" if about.title is None else ""
    silent = [name for name in missing if name != "title"]
    listed = " and ".join(part for part in (", ".join(silent[:-1]), *silent[-1:]) if part)
    says = [part for part in (named, f"names no {listed}" if silent else "") if part]
    watch.note(
        f"The report {' and '.join(says)}; say it with"
        f" {', '.join(f'--{name}' for name in missing)}. All words are public.",
        private=True,  # it is for the curator, and no part of what machines are told of the run
    )
