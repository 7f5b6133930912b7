# make run starts the app. make test runs the tests that have to pass before each commit.
# make slow runs the tests that really kill, hang, or wait. make load N=100 ROUNDS=3
# BROWSERS=3 simulates three lessons with a hundred people each, of whom three use real
# browsers. make accelerator OUT=folder tests everything that needs an accelerator. make
# oldest tests the simulated accelerator with the oldest torch that it supports. Each of
# these commands first installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
CONSTRAINTS ?= constraints.txt
LISTS := requirements.txt requirements-web.txt requirements-worker.txt

.PHONY: run test slow oldest load accelerator lint

run: $(VENV)/.run
	$(BIN)/python -m streamlit run app.py

# Tests in browsers come last, since they need both cores. Exit status 5 means that no tests
# were found.
PYTEST = $(BIN)/python -m pytest --rerun-show-tracebacks $(ARGS)
test: $(VENV)/.test
	$(PYTEST) -n 2 --dist loadfile -m "not (browser or slow)" || [ $$? = 5 ]
	$(PYTEST) -n 2 -m "browser and not (alone or slow)" || [ $$? = 5 ]
	$(PYTEST) -m "alone and not slow" || [ $$? = 5 ]

slow: $(VENV)/.test
	$(PYTEST) -m slow || [ $$? = 5 ]

# to_device/sim uses private parts of torch, so its tests also run with the oldest torch
# allowed.
OLDEST := .venv-oldest
oldest:
	mkdir -p $(OLDEST)
	sed 's/^torch==.*/torch==2.10.0/; s/^torchvision==.*/torchvision==0.25.0/' \
		constraints.txt > $(OLDEST)/constraints.txt
	$(MAKE) test VENV=$(OLDEST) CONSTRAINTS=$(OLDEST)/constraints.txt ARGS=tests/toolkit/sim

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

# A stamp is older than a list only if something has to be installed.
CPU_INDEX := https://download.pytorch.org/whl/cpu
define SIZE

Installing into $(VENV), once: 3.1 GB to download, 6 GB on disk, most of it for CUDA.
Without an NVIDIA GPU, a tenth of the download is enough. Press Ctrl-C, then run
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
