# make run starts the app. make test runs the tests that have to pass before each commit.
# make slow runs the tests that take long, or really kill, hang, or wait. make load N=100
# ROUNDS=3 BROWSERS=3 simulates three lessons with a hundred people each, of whom three
# use real browsers. make accelerator OUT=folder tests everything that needs an
# accelerator. make oldest tests the simulated accelerator with the oldest torch that it
# supports. make lock writes locks/ after a change to a list of requirements, and make
# lock ARGS=--upgrade also takes newer versions. Each of these commands first installs
# what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
TORCH := torch

.PHONY: run test slow oldest load accelerator lint lock

run: $(VENV)/.run
	$(BIN)/python -m streamlit run app.py

# Tests in browsers come last, since they need both cores. Exit status 5 means that no tests
# were found.
PYTEST = $(BIN)/python -m pytest --rerun-show-tracebacks $(ARGS)
IN_BROWSERS = tests/app/e2e
test: $(VENV)/.test
	$(PYTEST) -n 2 --dist loadfile -m "not (browser or slow)" || [ $$? = 5 ]
	$(PYTEST) -n 2 -m "browser and not (alone or slow)" $(IN_BROWSERS) || [ $$? = 5 ]
	$(PYTEST) -m "alone and not slow" $(IN_BROWSERS) || [ $$? = 5 ]

slow: $(VENV)/.test
	$(PYTEST) -n 2 --dist loadfile -m "slow and not alone" || [ $$? = 5 ]
	$(PYTEST) -m "slow and alone" || [ $$? = 5 ]

# to_device/sim uses private parts of torch, so its tests also run with the oldest torch
# allowed.
oldest:
	$(MAKE) test slow VENV=.venv-oldest TORCH=oldest ARGS=tests/toolkit/sim IN_BROWSERS=

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

lock: $(VENV)/.test
	$(BIN)/python -m tools.lock $(ARGS)

# CPU=yes installs torch without CUDA. An environment then keeps this build.
CPU_HERE := $(wildcard $(VENV)/lib/python3*/site-packages/torch-*+cpu.dist-info)
CPU_BUILD := $(if $(filter yes,$(CPU))$(CPU_HERE),yes)
define SIZE

Installing into $(VENV), once: 3.1 GB to download, 6 GB on disk, most of it for CUDA.
Without an NVIDIA GPU, a tenth of the download is enough. Press Ctrl-C, then run
    CPU=yes make run

endef
LINUX := $(filter Linux,$(shell uname -s))
define INSTALL
	$(PYTHON) -m venv $(VENV)
	$(if $(CPU_BUILD),$(BIN)/python -m pip install --no-compile --no-deps -r locks/$(TORCH)-cpu.txt)
	$(BIN)/python -m pip install --no-compile --require-hashes \
		$(if $(CPU_BUILD),,-r locks/$(TORCH).txt) -r locks/$(1).txt
endef
# A stamp is older than a lock only if something has to be installed.
LOCKS := $(wildcard locks/*.txt)
$(VENV)/.run: $(LOCKS)
	$(if $(CPU_BUILD),,$(if $(LINUX),$(info $(SIZE))))
	$(call INSTALL,app)
	@touch $@

$(VENV)/.test: $(LOCKS)
	$(call INSTALL,dev)
	@touch $@ $(VENV)/.run
