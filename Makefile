# make check          format, lint, types, import direction, smoke test
# make test           all tests that need neither PyTorch nor the network
# make test-torch     the tests that need PyTorch: installs torch, torchvision, timm, transformers,
#                     torchsummary
# make test-lower     the whole zoo as ONNX models in ONNX Runtime: minutes, and 8 GB of memory
# make test-documents the zoo in every notation, read, audited and printed again; 10 MB documents
# make test-models    real ONNX models in ONNX Runtime: downloads them into a cache
# make test-peers     other counters of PyTorch models against our conventions: 20 minutes
# make test-wild      600 models of ten other packages against PyTorch's counter: 30 minutes
# make test-zoo       every model of torchvision and timm against ../shared: an hour
# make test-configs   every published configuration of ../shared, four questions each: 10 minutes
# make test-sweep     everything in one sweep, sweeps that are killed, 10,000 candidates: an hour
# make fuzz           feed random bytes to the file readers, SECONDS=600 per reader, two at a time
# make fuzz-planted   plant three faults in each reader, and see that fuzzing finds them
# make run            print the layers of vgg16 (NET=resnet50 for another network)
# make page           build the report page: needs Node 20 and npm
# make dist           a wheel with the report page, into dist/
# make test-page      the report page in Chromium: needs Node 20, npm and /usr/bin/chromium
# make site           build the static site with the editor into build/site; downloads a wheel
# make check-site     the editor of the static site in Chromium: minutes
# make test-site      the static site in Chromium and in Node: a quarter of an hour
# make bench-site     start and later analyses of the static site: medians of five
# make bench-page     speed of the report page in Chromium
# make pictures       take the pictures of docs/images again; look at each
# make bench          speed and start-up time
# make bench-all      layerscope and every peer in one run, into docs/performance.md: an hour
# make bench-torch    speed against the other counters of PyTorch models that are installed
# make bench-measure  accuracy of measured and predicted times: minutes, on a quiet machine
# make goldens        rewrite the golden files; read the diff
# make docs           rewrite the generated pages of docs/
#
# CI runs check, test, page, test-page and test-torch (.ci/run). Each target creates .venv and installs what it
# needs. Test targets end with a line that says what they skipped and which target runs it.
# WORKERS=0 runs tests in one process; ARGS='-k name' is passed to pytest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
NET ?= vgg16
SECONDS ?= 600
WORKERS ?= 2
ARGS ?=
# Tests of one file share cached reports, so a file runs in one worker.
PARALLEL := -n $(WORKERS) --dist loadfile

.PHONY: setup run test test-lower test-documents test-models test-torch check bench bench-measure fuzz fuzz-planted goldens docs test-zoo test-configs test-peers test-wild test-threads test-signals test-sweep bench-torch bench-all page dist test-page bench-page site check-site test-site bench-site pictures clean

setup: $(VENV)/base

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	@touch $@

# pip does not compile an editable install; without this every start would.
$(VENV)/base: $(VENV)/pip pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable '.[measure,plot]'
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/dev: $(VENV)/base
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: setup
	@$(BIN)/layerscope show $(NET) $(ARGS)

test: $(VENV)/dev
	$(BIN)/pytest $(PARALLEL) $(ARGS)

test-lower: $(VENV)/dev
	$(BIN)/pytest tests/lower/test_lower.py tests/formats/onnx/test_onnx_zoo.py -m slow $(ARGS)

test-documents: $(VENV)/dev
	$(BIN)/pytest tests/formats/document/test_document_round_trip.py tests/formats/document/test_document_large.py tests/auditing/test_zoo_documents.py -m slow $(ARGS)

# The cache is LAYERSCOPE_MODELS, or ~/.cache/layerscope/models: downloads 220 MB, keeps 160 MB.
test-models: $(VENV)/dev
	$(BIN)/pytest tests/formats/onnx/test_onnx_models.py -m 'slow or not slow' $(ARGS)

# The CPU build of torch, named in constraints.txt. --no-deps, because torchvision, timm,
# torchsummary and torchinfo would install another build.
$(VENV)/torch: $(VENV)/dev
	$(PIP) install --constraint constraints.txt torch pillow transformers onnxscript
	$(PIP) install --constraint constraints.txt --no-deps torchvision timm torchsummary torchinfo
	@touch $@

TORCH_TESTS := $(shell find tests -name 'test_torch_*.py' -o -name 'test_*_torch.py' | sort)

test-torch: $(VENV)/torch
	$(BIN)/pytest $(TORCH_TESTS) $(PARALLEL) --all-installed $(ARGS)

test-zoo: $(VENV)/torch
	$(BIN)/pytest tests/zoo/test_torch_figures.py tests/formats/torch/test_torch_vision_names.py -m slow
	$(BIN)/python -m tests.zoo.zoo_torch $(ARGS)

test-configs: $(VENV)/torch
	$(BIN)/pytest tests/llm/test_torch_configs.py -m slow $(ARGS)

# 8 threads x 200 captures beside training loops: minutes.
test-threads: $(VENV)/torch
	$(BIN)/pytest -n 0 tests/formats/torch/test_torch_threads.py -m 'slow or not slow' $(ARGS)

# 200 tries of Ctrl-C and SIGTERM at random moments: ten minutes.
test-signals: $(VENV)/dev
	$(BIN)/python -m tests.cli.signals $(ARGS)

bench-torch: $(VENV)/peers
	$(BIN)/python bench/torch_peers.py $(ARGS)

# Torchvision, timm, the zoo, Caffe presets and 50 ONNX files; sweeps that are killed: an hour.
test-sweep: $(VENV)/torch
	$(PIP) install --constraint constraints.txt --editable '.[cluster]'
	$(BIN)/pytest tests/sweeping/test_sweep.py tests/sweeping/test_cluster.py -m 'slow or not slow' $(ARGS)
	$(BIN)/python -m tests.sweeping.whole

# onnx-tool has an environment of its own, because it needs other versions.
ONNX_TOOL := .venv-onnx-tool

$(ONNX_TOOL)/done: constraints.txt
	$(PYTHON) -m venv $(ONNX_TOOL)
	$(ONNX_TOOL)/bin/pip --disable-pip-version-check --quiet install onnx-tool==1.0.1
	@touch $@

# ARGS=--quick for ten minutes instead of an hour.
bench-all: $(VENV)/peers $(ONNX_TOOL)/done
	$(BIN)/python bench/all.py --tool $(ONNX_TOOL)/bin/python $(ARGS)

# --no-deps, because they would install another torch; the libraries they import are listed here.
PEERS := fvcore ptflops thop calflops deepspeed timm mmengine
IMPORTED := addict einops hjson huggingface_hub iopath msgpack numpy platformdirs portalocker psutil \
  py-cpuinfo pydantic PyYAML rich safetensors setuptools tabulate termcolor tqdm yacs yapf

$(VENV)/peers: $(VENV)/torch
	$(PIP) install --constraint constraints.txt $(IMPORTED)
	$(PIP) install --constraint constraints.txt --no-deps accelerate $(PEERS)
	@touch $@

test-peers: $(VENV)/peers
	$(BIN)/pytest tests/conventions/test_peers*.py tests/notations/test_peers*.py -m peers $(ARGS)

# An environment of its own, so that these packages change no other test.
WILD := .venv-wild
WILD_PIP := $(WILD)/bin/pip --disable-pip-version-check --quiet
WILD_PACKAGES := pytorchcv segmentation-models-pytorch monai diffusers ultralytics vit-pytorch \
  x-transformers open_clip_torch peft
WILD_IMPORTED := einops einx frozendict ftfy huggingface_hub importlib_metadata loguru matplotlib \
  numpy opencv-python-headless pillow polars psutil PyYAML regex requests safetensors scipy tqdm

$(WILD)/done: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(WILD)
	$(WILD_PIP) install --constraint constraints.txt --editable . torch transformers $(WILD_IMPORTED)
	$(WILD_PIP) install --constraint constraints.txt --no-deps accelerate timm torchvision \
	  torch-einops-utils $(WILD_PACKAGES)
	@touch $@

test-wild: $(WILD)/done
	$(WILD)/bin/python -m tests.wild.run_torch $(ARGS)

check: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -m smoke

bench: $(VENV)/dev
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/chain.py
	$(BIN)/python bench/caffemodel.py
	$(BIN)/python bench/large_files.py
	$(BIN)/python bench/onnx_models.py $(ARGS)

bench-measure: $(VENV)/dev
	$(BIN)/python bench/measure.py
	$(BIN)/python bench/predict.py

$(VENV)/fuzz: $(VENV)/dev
	$(PIP) install atheris
	@touch $@

TARGETS ?= prototxt protobuf onnx mat5 safetensors gguf pickle zip pt2 run_json hf_config numbers budget times document audit builder

# Two at a time; what a target printed is .fuzz/TARGET.log, what it found .fuzz/TARGET-crash-….
fuzz: $(VENV)/fuzz
	@mkdir -p .fuzz
	@printf '%s\n' $(TARGETS) | xargs -P 2 -I @ sh -c '\
	  $(BIN)/python -m tests.fuzz.fuzz @ .fuzz/@ -max_total_time=$(SECONDS) \
	    -artifact_prefix=.fuzz/@- > .fuzz/@.log 2>&1; code=$$?; \
	  echo "@: exit $$code, $$(grep -a "^Done" .fuzz/@.log || tail -n 3 .fuzz/@.log)"; exit $$code'

# Whether the targets find faults that are planted in a copy of the readers.
fuzz-planted: $(VENV)/fuzz
	$(BIN)/python -m tests.fuzz.planted $(SECONDS) $(TARGETS)

goldens: $(VENV)/dev
	$(BIN)/pytest --refresh-goldens

docs: $(VENV)/dev
	$(BIN)/python docs/generate.py

# The page is one HTML file, which `layerscope report` fills with data.
PAGE := src/layerscope/web/page.html
NPM := npm --prefix page

page: $(PAGE)

page/node_modules/done: page/package.json page/package-lock.json
	$(NPM) ci --no-audit --no-fund
	@touch $@

$(PAGE): page/node_modules/done page/page.html $(wildcard page/*.ts) $(shell find page/src -type f)
	$(NPM) run build

dist: $(PAGE) $(VENV)/base
	LAYERSCOPE_RELEASE=1 $(PIP) wheel --no-deps --wheel-dir dist .

test-page: $(PAGE) $(VENV)/base
	PYTHON=$(abspath $(BIN)/python) $(NPM) test

bench-page: $(PAGE) $(VENV)/base
	PYTHON=$(abspath $(BIN)/python) $(NPM) run bench

pictures: $(PAGE) $(VENV)/base
	PYTHON=$(abspath $(BIN)/python) $(NPM) run pictures

# The site runs the package in the browser: Pyodide from npm, our sources, msgspec's wheel.
SITE := build/site
SITE_FILES := page/site.html page/site_assets.py page/compile.mjs page/wheels.txt $(wildcard page/*.ts) \
  $(shell find page/src -type f) \
  $(shell find src/layerscope -type f -not -path '*/__pycache__/*' -not -path '*/layerscope/web/*')

site: $(SITE)/sw.js

$(SITE)/sw.js: page/node_modules/done $(VENV)/base $(SITE_FILES)
	@mkdir -p build
	$(NPM) run build-site
	$(BIN)/python page/site_assets.py $(SITE)

check-site: $(SITE)/sw.js $(VENV)/base
	PYTHON=$(abspath $(BIN)/python) $(NPM) run check-site

test-site: $(SITE)/sw.js $(VENV)/dev
	PYTHON=$(abspath $(BIN)/python) $(NPM) run test-site

bench-site: $(SITE)/sw.js
	PYTHON=$(abspath $(BIN)/python) $(NPM) run bench-site

clean:
	rm -rf page/node_modules page/.cache src/layerscope/web build dist
	rm -rf $(VENV) $(WILD) $(ONNX_TOOL) .sweep .mypy_cache .ruff_cache .pytest_cache .hypothesis .fuzz
