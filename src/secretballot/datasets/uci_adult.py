"""UCI Adult, raw, with the schema that its public description states."""

from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from secretballot.datasets.reference import Folder, reference_file
from secretballot.exceptions import DataError

ADULT_TARGET = "income"
ADULT_CLASSES = ("<=50K", ">50K")

_CATEGORIES = {
    "workclass": (
        "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, "
        "Never-worked"
    ),
    "education": (
        "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th,"
        " 12th, Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool"
    ),
    "marital-status": (
        "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
        "Married-AF-spouse"
    ),
    "occupation": (
        "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty,"
        " Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving,"
        " Priv-house-serv, Protective-serv, Armed-Forces"
    ),
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": (
        "United-States, Cambodia, England, Puerto-Rico, Canada, Germany,"
        " Outlying-US(Guam-USVI-etc), India, Japan, Greece, South, China, Cuba, Iran, Honduras,"
        " Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal, Ireland, France,"
        " Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala,"
        " Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong,"
        " Holand-Netherlands"
    ),
}
_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)

#: Names, types and categories as adult.names states them, spelling included: public knowledge,
#: taken from no row.
ADULT_SCHEMA: dict[str, Any] = {
    "columns": {
        name: _CATEGORIES[name].split(", ") if name in _CATEGORIES else "numeric"
        for name in _COLUMNS
    },
    "classes": list(ADULT_CLASSES),
}


class Adult(NamedTuple):
    """UCI Adult.

    Attributes
    ----------
    train : DataFrame of shape (32561, 15)
        adult.data: fourteen features and the target "income".
    test : DataFrame of shape (16281, 15)
        adult.test, in the order of the vote file.

    Examples
    --------
    >>> import pandas as pd
    >>> people = sb.datasets.Adult(pd.DataFrame({"age": [39]}), pd.DataFrame({"age": [25]}))
    >>> len(people.train), len(people.test)
    (1, 1)
    """

    train: pd.DataFrame
    test: pd.DataFrame


def adult(folder: Folder = None) -> Adult:
    """Read the raw files of UCI Adult.

    Numbers are int64, categories are text with "?" where unknown, and the target is "<=50K" or
    ">50K" in both files.

    Parameters
    ----------
    folder : path, optional
        Folder of the reference data; $SECRETBALLOT_DATA, else ../shared/data, where none is given.

    Raises
    ------
    DataError
        If a file is absent or damaged.
    """
    return Adult(
        _read_csv(reference_file(folder, "adult", "adult.data"), 0),
        _read_csv(reference_file(folder, "adult", "adult.test"), 1),
    )


def _read_csv(path: Path, comment_lines: int) -> pd.DataFrame:
    types: dict[Any, Any] = {name: str if name in _CATEGORIES else "int64" for name in _COLUMNS}
    types[ADULT_TARGET] = str
    try:
        frame = pd.read_csv(
            path,
            names=[*_COLUMNS, ADULT_TARGET],
            skiprows=comment_lines,
            skipinitialspace=True,
            dtype=types,
            keep_default_na=False,
        )
    except ValueError:
        raise DataError(f"the reference file {path.name} is damaged; fetch it again.") from None
    # The test file ends its labels in a full stop.
    frame[ADULT_TARGET] = frame[ADULT_TARGET].str.removesuffix(".")
    return frame
