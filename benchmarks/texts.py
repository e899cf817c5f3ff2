"""What encodings of free text are worth: the section of a Debian package from its one-line
description, and the library of a function from its documentation.

Run: python benchmarks/texts.py [packages | functions]

Packages need `apt-get update` before; functions are those of the libraries that are installed. No
private data: both are texts that anybody has.
"""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import secretballot as sb

N_PUBLIC, N_TEST, N_TEACHERS = 2000, 2000, 40
SECTIONS = {
    "net": ("net", "web", "mail", "comm"),
    "science": ("science", "math", "education"),
    "games": ("games",),
    "media": ("sound", "graphics", "video"),
    "admin": ("admin", "utils"),
    "text": ("text", "tex", "editors", "fonts"),
}
LIBRARIES = ("numpy", "scipy", "pandas", "sklearn", "pyarrow")
NAMES = re.compile(r"numpy|scipy|pandas|sklearn|pyarrow|arrow|\bnp\b|\bpd\b", re.IGNORECASE)
SPECS = [
    {"width": 100},
    {"width": 300},
    {"width": 1000},
    {"encoding": "hashed", "width": 300},
    {"encoding": "hashed", "width": 1024},
]


def packages() -> pd.DataFrame:
    """Return descriptions of packages, a line each, and their sections."""
    listed = subprocess.run(
        ["apt-cache", "dumpavail"], capture_output=True, text=True, check=True
    ).stdout
    section_of = {own: name for name, several in SECTIONS.items() for own in several}
    rows = []
    for package in listed.split("\n\n"):
        fields = dict(re.findall(r"^(Description|Section): (.*)$", package, re.MULTILINE))
        if fields.get("Section") in section_of and "Description" in fields:
            rows.append((fields["Description"], section_of[fields["Section"]]))
    return pd.DataFrame(rows, columns=["text", "label"])


def functions() -> pd.DataFrame:
    """Return documentation of functions, without names of libraries and examples, and the
    libraries."""
    rows = [
        (NAMES.sub("", text.split(">>>")[0]), library)
        for library in LIBRARIES
        for module in modules(importlib.import_module(library))
        for text in texts_of(module, library)
    ]
    return pd.DataFrame(rows, columns=["text", "label"])


def modules(library: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(library.__path__, library.__name__ + "."):
        if not re.search(r"test|setup|f2py", found.name):
            try:
                yield importlib.import_module(found.name)
            except Exception as error:  # some need what is not installed
                print(f"left out: {found.name} ({type(error).__name__})", file=sys.stderr)


def texts_of(module: ModuleType, library: str) -> Iterator[str]:
    for name, one in list(vars(module).items()):
        own = [] if not inspect.isclass(one) else list(vars(one).values())
        for documented in [one, *own]:
            text = getattr(documented, "__doc__", None)
            where = getattr(documented, "__module__", None) or ""
            if not name.startswith("_") and isinstance(text, str) and where.startswith(library):
                yield text


def main(of: str) -> None:
    warnings.simplefilter("ignore")
    table = {"packages": packages, "functions": functions}[of]()
    table = table[table["text"].str.len() >= 10].drop_duplicates("text")
    table = table.sample(frac=1, random_state=0).reset_index(drop=True)
    classes = sorted(table["label"].unique())
    public, test = table[:N_PUBLIC], table[N_PUBLIC : N_PUBLIC + N_TEST]
    private = table[N_PUBLIC + N_TEST :]
    print(
        f"{len(private)} private, {len(classes)} classes, {np.mean(table['text'].str.len()):.0f} c."
    )
    for spec in SPECS:
        declared = {"columns": {"text": {"kind": "text", **spec}}}
        schema = sb.data.Schema.from_json(declared, public=public)
        X, X_public, X_test = (schema.encode(rows) for rows in (private, public, test))
        y, y_test = private["label"].to_numpy(), test["label"].to_numpy()
        plain = LogisticRegression(max_iter=300).fit(X, y).score(X_test, y_test)
        votes = np.zeros((len(X_test), len(classes)))
        for number in range(N_TEACHERS):
            rows = slice(number, None, N_TEACHERS)
            teacher = LogisticRegression(C=10, max_iter=200).fit(X[rows], y[rows])
            votes += teacher.predict(X_test)[:, None] == np.array(classes)
        voted = (np.array(classes)[votes.argmax(axis=1)] == y_test).mean()
        start, found = time.perf_counter(), []
        for epsilon in (1.0, 4.0):
            budget = sb.PrivacyBudget(epsilon=epsilon, delta=1e-6)
            model = sb.RecordMomentsClassifier(epsilon=budget.epsilon, delta=budget.delta)
            model.fit(X, y, X_public=X_public, classes=classes)
            found.append(model.score(X_test, y_test))
        print(
            f"| {spec} | {100 * plain:.1f} | {100 * voted:.1f} | {100 * found[0]:.1f} |"
            f" {100 * found[1]:.1f} | {(time.perf_counter() - start) / 2:.0f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["packages"]))
