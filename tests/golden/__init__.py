"""Golden references: prices, runs and commands whose results no change may move unnoticed.

Everything is stated neutrally, as kinds and parameters, so that it outlives classes and formats:
`adapters` and `seam` alone know the present classes. `python -m golden` compares, and with
`--reason` records (with `tests` and `benchmarks` on the path; see `make golden`).
"""
