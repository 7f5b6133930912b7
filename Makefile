# make run starts the app, make test tests it, make load N=100 ROUNDS=3 BROWSERS=3 holds
# lessons of so many people, make accelerator OUT=folder tries and measures all that
# needs an accelerator; all install what they need first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
CONSTRAINTS ?= constraints.txt
LISTS := requirements.txt requirements-web.txt requirements-worker.txt

.PHONY: run test load accelerator lint

run: $(VENV)/.run
	$(BIN)/python -m streamlit run app.py

# Two at a time, but for browsers, which are timed. Exit status 5: there were no such tests.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not browser" $(ARGS) || [ $$? = 5 ]
	$(BIN)/python -m pytest -m browser $(ARGS) || [ $$? = 5 ]

N := 100
ROUNDS := 1
BROWSERS := 3
CLASS :=
load: $(VENV)/.test
	$(BIN)/python -m tests.load --people $(N) --rounds $(ROUNDS) --browsers $(BROWSERS) \
		$(if $(CLASS),--class)

OUT := accelerator
accelerator: $(VENV)/.test
	$(BIN)/python -m tests.accelerator --out $(OUT) --seconds 1800

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The stamps are older than the lists only when something has to be installed.
$(VENV)/.run: $(LISTS) $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -r requirements.txt -c $(CONSTRAINTS)
	@touch $@

$(VENV)/.test: requirements-dev.txt $(LISTS) $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -r requirements-dev.txt -c $(CONSTRAINTS)
	@touch $@ $(VENV)/.run
