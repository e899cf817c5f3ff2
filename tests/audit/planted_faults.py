"""A tiny program with one planted fault, run by the tests of `secretballot audit` in processes of
its own.

    python planted_faults.py FAULT PRIVATE --out DIR

It stands for a `learn` whose release is right but for the fault. Three of the faults were found in
real releases:

- address: a released file holds the address of an object that was made after the private records
  were read;
- coin: a missing value in a private record moves the global generator, from which the student then
  draws;
- whole-table: one cell of the private table decides how all the others are read, so that every
  teacher's vote moves.

Three are what a careless line may do: a file is named by a private cell (name), lines stand in the
order of private values (order), and a message quotes a cell (message).

"none" has no fault, and releases a count with noise that covers one record.
"""

import json
import random
import sys
from pathlib import Path

SIGMA = 20.0  # covers one record at epsilon .5, delta 1e-15 and less


def release(fault, private, folder):
    """Write what the program releases of a private file: a JSON list of rows, of which cells may
    be null or text."""
    folder.mkdir(parents=True)
    certificate = {"epsilon": 0.5, "delta": 1e-15, "relation": "add-remove", "unit": "record"}
    (folder / "certificate.json").write_text(json.dumps(certificate))
    rows = json.loads(private.read_text())
    if fault == "address":
        private_side = [bytes(470) for _ in rows]
        public = bytes(470)  # lies behind them
        schema = {"content": {"coefficient": 0.25, "__id__": id(public)}}
        del private_side
        (folder / "student.json").write_text(json.dumps(schema))
    elif fault == "coin":
        random.seed(0)
        if any(cell is None for row in rows for cell in row):
            random.random()
        (folder / "student.json").write_text(
            json.dumps({"coefficients": [random.random() for _ in range(3)]})
        )
    elif fault == "order":
        order = sorted((0, 1), key=rows[-1].__getitem__)
        (folder / "labels.csv").write_text("query\n" + "".join(f"{one}\n" for one in order))
    else:
        write_count(fault, rows, folder)
    if fault == "name":
        (folder / f"shard-{rows[-1][0]}.txt").write_text("")
    if fault == "message":
        print(f"the last record begins with {rows[-1][0]}")


def write_count(fault, rows, folder):
    """Write how many teachers, one for each row, vote that their first cell is above 50, with
    noise."""
    as_text = fault == "whole-table" and any(isinstance(cell, str) for row in rows for cell in row)
    if as_text:
        votes = [str(row[0]) > "50" for row in rows]
    else:
        votes = [isinstance(row[0], int) and row[0] > 50 for row in rows]
    sigma = SIGMA / 40 if fault == "whole-table" else SIGMA
    count = sum(votes) + random.SystemRandom().gauss(0, sigma)
    # of one width, so that the size of the file says nothing
    (folder / "labels.csv").write_text(f"query,noisy_count\n0,{count:08.3f}\n")


if __name__ == "__main__":
    release(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[-1]) / "release")
