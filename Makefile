# make run starts the app, make test tests it; both install what they need first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
CONSTRAINTS ?= constraints.txt

.PHONY: run test lint

run: $(VENV)/.run
	$(BIN)/python -m streamlit run app.py

test: $(VENV)/.test
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The stamps are older than the lists only when something has to be installed.
$(VENV)/.run: requirements.txt $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -r requirements.txt -c $(CONSTRAINTS)
	@touch $@

$(VENV)/.test: requirements-dev.txt requirements.txt $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -r requirements-dev.txt -c $(CONSTRAINTS)
	@touch $@ $(VENV)/.run
