"""Memory and time of votes on a wide table: a column of 5,000 categories and one of free text.

Run: python benchmarks/wide_tables.py [ROWS]

Each setting runs in a process of its own, whose peak memory is read at the end; "sparse" is
`schema.encode_sparse`, of a table on disk for the public points alone. The table is made by a rule:
frequencies of categories and words fall like 1 / rank, as they do in language.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import secretballot as sb

N_CATEGORIES, N_WORDS, N_PUBLIC, N_TEACHERS = 5000, 3000, 5000, 250
TEACHERS = ("logistic", "naive-bayes", "relation")


def table(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)

    def ranks(most: int, size: int) -> np.ndarray:
        chances = 1 / np.arange(1, most + 1)
        return rng.choice(most, size=size, p=chances / chances.sum())

    shop = ranks(N_CATEGORIES, n_rows)
    words = ranks(N_WORDS, 12 * n_rows).reshape(n_rows, 12)
    age = rng.normal(50, 15, n_rows)
    score = (shop % 3 - 1) + (words[:, :3] % 2 - 0.5).sum(axis=1) + rng.normal(0, 0.5, n_rows)
    return pd.DataFrame(
        {
            "age": age,
            "shop": np.char.add("s", shop.astype(str)),
            "note": [" ".join(f"w{word}" for word in row) for row in words],
            "bought": np.where(score > 0, "yes", "no"),
        }
    )


def one_setting(folder: Path, teacher: str, form: str, where: str) -> None:
    public = pd.read_parquet(folder / "public.parquet")
    shops = {"kind": "categorical", "categories": [f"s{place}" for place in range(N_CATEGORIES)]}
    note = {"kind": "text", "width": 1000}
    schema = sb.data.Schema.from_json(
        {"columns": {"age": "numeric", "shop": shops, "note": note}}, public=public
    )
    encode = schema.encode_sparse if form == "sparse" else schema.encode
    X_public = encode(public)
    started = time.perf_counter()
    if where == "disk":
        about = {"schema": schema, "target": "bought", "classes": ["no", "yes"]}
        X, y = (
            sb.store_table(folder / "private.parquet", folder / f"{teacher}-{form}", **about),
            None,
        )
    else:
        private = pd.read_parquet(folder / "private.parquet")
        X, y = encode(private), private["bought"].to_numpy()
    read = time.perf_counter() - started
    model = sb.PATEClassifier(named(teacher), n_teachers=N_TEACHERS, epsilon=2.0, delta=1e-6)
    started = time.perf_counter()
    model.fit_labels(X, y, X_public=X_public, classes=["no", "yes"])
    voted = time.perf_counter() - started
    released = model.released_
    named_labels = np.asarray(released.classes)[released.labels]
    right = np.mean(np.asarray(public["bought"])[released.queries] == named_labels)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    said = {"read": read, "votes": voted, "memory": memory, "right": right}
    print(json.dumps(said | {"columns": X_public.shape[1]}))


def named(teacher: str) -> object:
    from sklearn.naive_bayes import BernoulliNB
    from sklearn.neighbors import KNeighborsClassifier

    others = {"relation": KNeighborsClassifier(), "naive-bayes": BernoulliNB()}
    return others.get(teacher, teacher)


def main(n_rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table(n_rows, 1).to_parquet(folder / "private.parquet", index=False)
        table(N_PUBLIC, 2).to_parquet(folder / "public.parquet", index=False)
        print("| teacher | form | where | columns | read | train and vote | memory | right |")
        for teacher in TEACHERS:
            for where in ("disk", "memory") if teacher == "logistic" else ("disk",):
                for form in ("arrays", "sparse"):
                    words = [sys.executable, __file__, name, teacher, form, where]
                    done = subprocess.run(words, capture_output=True, text=True, check=True)
                    said = json.loads(done.stdout.splitlines()[-1])
                    print(
                        f"| {teacher} | {form} | {where} | {said['columns']:,} |"
                        f" {said['read']:.0f} s | {said['votes']:.0f} s | {said['memory']:.2f} GB |"
                        f" {100 * said['right']:.1f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    if len(sys.argv) == 5:
        one_setting(Path(sys.argv[1]), *sys.argv[2:])
    else:
        main(int(*sys.argv[1:] or ["100000"]))
