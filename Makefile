# make run starts the app, make test is the gate, make slow runs the tests that kill, hang
# or wait for real, make load N=100 ROUNDS=3 BROWSERS=3 plays lessons of so many people,
# make accelerator OUT=folder tries all that needs one; all install what they need first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
CONSTRAINTS ?= constraints.txt
LISTS := requirements.txt requirements-web.txt requirements-worker.txt

.PHONY: run test slow load accelerator lint

run: $(VENV)/.run
	$(BIN)/python -m streamlit run app.py

# Browsers come after the rest, since they need both cores. Exit status 5: no such tests.
PYTEST = $(BIN)/python -m pytest --rerun-show-tracebacks $(ARGS)
test: $(VENV)/.test
	$(PYTEST) -n 2 --dist loadfile -m "not (browser or slow)" || [ $$? = 5 ]
	$(PYTEST) -n 2 -m "browser and not (alone or slow)" || [ $$? = 5 ]
	$(PYTEST) -m "alone and not slow" || [ $$? = 5 ]

slow: $(VENV)/.test
	$(PYTEST) -m slow || [ $$? = 5 ]

N := 100
ROUNDS := 1
BROWSERS := 3
CLASS :=
load: $(VENV)/.test
	$(BIN)/python -m tools.load --people $(N) --rounds $(ROUNDS) --browsers $(BROWSERS) \
		$(if $(CLASS),--class)

OUT := accelerator
accelerator: $(VENV)/.test
	$(BIN)/python -m tools.accelerator --out $(OUT) --seconds 1800

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The stamps are older than the lists only when something has to be installed.
CPU_INDEX := https://download.pytorch.org/whl/cpu
define SIZE

Installing into $(VENV), once: 3.1 GB to download, 6 GB on the disk, most of it CUDA.
Without an NVIDIA GPU a tenth is enough: Ctrl-C, then
    PIP_EXTRA_INDEX_URL=$(CPU_INDEX) make run

endef
LINUX := $(filter Linux,$(shell uname -s))
$(VENV)/.run: $(LISTS) $(CONSTRAINTS)
	$(if $(PIP_EXTRA_INDEX_URL),,$(if $(LINUX),$(info $(SIZE))))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --no-compile -r requirements.txt -c $(CONSTRAINTS)
	@touch $@

$(VENV)/.test: requirements-dev.txt $(LISTS) $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --no-compile -r requirements-dev.txt -c $(CONSTRAINTS)
	@touch $@ $(VENV)/.run
