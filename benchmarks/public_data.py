"""Reference data, read where it lies: MNIST, UCI Adult with the schema that its public description
states, and the vote counts that the PATE papers published."""

import gzip
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from secretballot._typing import IntArray
from secretballot.exceptions import DataError

_DEFAULT = Path(__file__).resolve().parents[1].parent / "shared" / "data"
_IMAGE_SIDE = 28


class Split(NamedTuple):
    """A dataset with its customary split.

    Attributes
    ----------
    X_train, X_test : table of shape (n_rows, n_features)
    y_train, y_test : ndarray of shape (n_rows,), int64
        Class indices.
    """

    X_train: Any
    y_train: IntArray
    X_test: Any
    y_test: IntArray


def _reference_file(*parts: str) -> Path:
    """Return the path of one file of the reference data, which lie in $SECRETBALLOT_DATA, else in
    ../shared/data; `DataError` if it is absent."""
    path = Path(os.environ.get("SECRETBALLOT_DATA") or _DEFAULT).joinpath(*parts)
    if not path.is_file():
        raise DataError(f"there is no {path}; name the folder of the data in SECRETBALLOT_DATA.")
    return path


def mnist() -> Split:
    """Read MNIST: 28 x 28 grey images of ten digits.

    Returns
    -------
    Split
        Arrays of uint8 from 0 to 255, shapes (60000, 784) and (10000, 784).

    Raises
    ------
    DataError
        If a file is absent.
    """
    parts: list[Any] = []
    for name in ("train", "t10k"):
        images = _read_idx(_reference_file("mnist", f"{name}-images-idx3-ubyte.gz"))
        labels = _read_idx(_reference_file("mnist", f"{name}-labels-idx1-ubyte.gz"))
        parts += [images.reshape(-1, _IMAGE_SIDE**2), labels.astype(np.int64)]
    return Split(*parts)


def mnist_votes() -> IntArray:
    """Read the counts of 250 teachers on the first 9000 MNIST test images, shape (9000, 10)."""
    return _read_votes("mnist_250_teachers.npy")


def adult_votes() -> IntArray:
    """Read the counts of 250 teachers on the rows of adult.test, shape (16281, 2)."""
    return _read_votes("adult_250_teachers.npy")


def _read_votes(name: str) -> IntArray:
    # the files hold integers as floats
    return np.load(_reference_file("votes", name), allow_pickle=False).astype(np.int64)


def _read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Read an IDX file of bytes.

    Two zero bytes, the type, the number of dimensions, the dimensions, the values.
    """

    data = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(data, dtype=">u4", count=data[3], offset=4)
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * len(shape)).reshape(*shape)


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
_NAMES = (
    "age, workclass, fnlwgt, education, education-num, marital-status, occupation, relationship,"
    " race, sex, capital-gain, capital-loss, hours-per-week, native-country"
)
_COLUMNS = _NAMES.split(", ")

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
    """

    train: pd.DataFrame
    test: pd.DataFrame


def adult() -> Adult:
    """Read the raw files of UCI Adult.

    Numbers are int64, categories are text with "?" where unknown, and the target is "<=50K" or
    ">50K" in both files.

    Raises
    ------
    DataError
        If a file is absent.
    """
    return Adult(
        _read_csv(_reference_file("adult", "adult.data"), 0),
        _read_csv(_reference_file("adult", "adult.test"), 1),
    )


def _read_csv(path: Path, comment_lines: int) -> pd.DataFrame:
    types: dict[Any, Any] = {name: str if name in _CATEGORIES else "int64" for name in _COLUMNS}
    types[ADULT_TARGET] = str
    frame = pd.read_csv(
        path,
        names=[*_COLUMNS, ADULT_TARGET],
        skiprows=comment_lines,
        skipinitialspace=True,
        dtype=types,
        keep_default_na=False,
    )
    # The test file ends its labels in a full stop.
    frame[ADULT_TARGET] = frame[ADULT_TARGET].str.removesuffix(".")
    return frame
