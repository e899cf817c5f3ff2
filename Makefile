# The first two targets are all a newcomer needs; both make their own environment from nothing but python3 with venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DATA   ?= $(or $(SECRETBALLOT_DATA),../shared/data)
OUT    ?= demo-out/$(shell date +%Y%m%d-%H%M%S)
# For `make figures`: where pictures go, how many seeds, and the first of them.
FIGURES    ?= figures
SEEDS      ?= 10
FIRST_SEED ?= 0
# For campaigns: a part of the inputs, kills and runs of each case.
SCALE      ?= 1

# One BLAS thread: teachers are small, and threads inside them only get in each other's way.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export SECRETBALLOT_DATA := $(abspath $(DATA))

# The suite starts the program some hundred times: what Python makes of the sources is kept between the starts.
unexport PYTHONDONTWRITEBYTECODE

# As many workers as there are cores, up to eight; one that has nothing left takes tests from another.
PARALLEL := -n auto --maxprocesses 8 --dist worksteal

# Ledgers wait for the disk at every write. Where memory takes files, and there is room, the tests' are there; kills, full disks
# and crashes look the same to a program.
ROOMY := awk 'NR == 2 && $$4 > 8000000 { print "/dev/shm" }'
export PYTEST_DEBUG_TEMPROOT ?= $(shell test -w /dev/shm && df -Pk /dev/shm | $(ROOMY))

.PHONY: demo demo-service demo-service-sqlite test golden test-lowest check docs test-slow bench figures campaigns audit fuzz fuzz-service torture mutation verifier smoke clean

demo: $(VENV)/.ready
	$(BIN)/secretballot demo --out $(OUT)

# A service on data that comes with the program, its ledger in a PostgreSQL server that is started for it: prints its address
# and keys, ends with Ctrl-C; every start begins anew.
demo-service: $(VENV)/.ready
	$(BIN)/python -m campaigns.demo_service

# The same with a ledger of SQLite: nothing else is started, and it goes on when started again.
demo-service-sqlite: $(VENV)/.ready
	$(BIN)/python -m campaigns.demo_service demo-service

# Files that have processes of their own: they import torch, beside which every small fit takes longer, or start clusters,
# whose threads stay and draw from the generators that other tests look at. One process takes a group: it has the cluster.
APART := tests/teachers/test_torch_teachers.py tests/test_docs_examples.py tests/test_docstring_examples.py \
	tests/teachers/test_dask_engine.py tests/teachers/test_ray_engine.py \
	tests/learners/test_learners_on_engines.py

# Everything that must hold.
test: $(VENV)/.ready
	$(BIN)/python -m pytest $(PARALLEL) $(APART:%=--ignore=%)
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadgroup $(APART)


# Recorded prices of all lists of events, runs of every method and every verb: a table of what moved (tests/golden). The prices
# take half an hour of two cores; `make test` has 150 of them. To record anew: python -m golden --reason TEXT.
golden: $(VENV)/.ready
	PYTHONPATH=tests:benchmarks $(BIN)/python -W ignore -m golden
# With the lowest version of every dependency that pyproject.toml allows; that newer ones warn of older ones is no news.
test-lowest:
	rm -rf build/lowest && $(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet uv
	build/lowest/bin/uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct \
		--editable ".[all]" --group test
	build/lowest/bin/python -m pytest $(PARALLEL) -W ignore::DeprecationWarning

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest $(PARALLEL) -m slow -o faulthandler_timeout=0

check: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/size.py --check
	$(BIN)/python tools/settings_table.py --check
	$(BIN)/python tools/certificate_schema.py --check

# The site: build/site/index.html. A broken link or anchor, or a script, style or font from elsewhere, ends it.
docs: build/docs-env/.ready docs/assets/gallery/plan.svg
	NO_MKDOCS_2_WARNING=1 build/docs-env/bin/mkdocs build --clean
	! grep -rnoE --include='*.html' '<(script|link|img|iframe)[^>]*(src|href)="?(https?:)?//[^>]*>' build/site

# The pictures of the gallery, from runs of this machine.
docs/assets/gallery/plan.svg: benchmarks/gallery.py | $(VENV)/.ready
	$(BIN)/python benchmarks/gallery.py docs/assets/gallery

build/docs-env/.ready: pyproject.toml
	$(PYTHON) -m venv build/docs-env
	build/docs-env/bin/python -m pip install --quiet --upgrade pip
	build/docs-env/bin/python -m pip install --quiet --group docs
	touch $@

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/run_all.py

# Figures 2 and 3 of Liu et al. 2021 on Adult, and a table beside reference figures.
figures: $(VENV)/.ready
	$(BIN)/python benchmarks/appendix_f.py $(SEEDS) $(FIGURES) $(FIRST_SEED)

# Campaigns, of hours; stopped, each goes on where it was, and its table is in build/CAMPAIGN/report.txt. Attacks on whole
# commands (docs/guides/auditing.md); hostile files for every parser; hostile requests to the service; kills, full disks, races,
# hung and lost connections (docs/measurements.md).
audit fuzz fuzz-service torture: $(VENV)/.ready
	$(BIN)/python -m campaigns $@ --scale $(SCALE)

campaigns: audit fuzz fuzz-service torture

# Small changes of the core that no test of it notices; hours on two cores. Stopped, it goes on where it was.
mutation: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet "mutmut>=3.8"
	$(BIN)/mutmut run
	$(BIN)/mutmut results

# The second verifier in one file, for machines without the package: python secretballot-verify.pyz FOLDER
verifier:
	mkdir -p build
	$(PYTHON) tools/one_file_verifier.py build/secretballot-verify.pyz

# A wheel built and installed as a stranger would, without development tools, and the main job run with it.
smoke:
	rm -rf build/smoke && $(PYTHON) -m venv build/smoke
	build/smoke/bin/python -m pip install --quiet --upgrade pip
	build/smoke/bin/python -m pip install --quiet ".[all]"
	build/smoke/bin/secretballot demo --out build/smoke/out
	for release in build/smoke/out/*/release; do build/smoke/bin/secretballot verify $$release || exit; done

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $@

clean:
	rm -rf $(VENV) build dist demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
