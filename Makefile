# Each target makes .venv when it is missing; Python 3.11 and make are all that is needed.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# The suite runs two processes; one thread each keeps them off each other's cores.
TEST_ENV := OMP_NUM_THREADS=1

.PHONY: demo test lint types tests results clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/bltm demo --out demo --overwrite

test: lint types tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

tests: $(STAMP)
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadgroup

# docs/results.md, its figures and the README's table, from the rows in results/.
results: $(STAMP)
	$(BIN)/python -m bltm.report

clean:
	rm -rf .venv build dist demo .pytest_cache .ruff_cache .mypy_cache .hypothesis
