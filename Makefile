# make: list the targets.
# make demo: install and show the learner at work.  make test: install and test.  make lint: check.
# make docs: build the documentation's site into site/; a link that leads nowhere is an error.
# make audit: look for known vulnerabilities in what was installed.
# PYTHON names the interpreter (3.10 or newer), ARGS is passed on: make demo ARGS="--seconds 30".
# JOBS is how many processes the tests are spread over; 0: all in one, where -s and --pdb work.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
JOBS ?= 2

# The nodes of a demo or a test talk to each other, not to the network's other robots.
export ROS_AUTOMATIC_DISCOVERY_RANGE ?= LOCALHOST

# Packages come without bytecode, and a process without any needs 4 s more to import a node: tests
# and a demo start many.
unexport PYTHONDONTWRITEBYTECODE

READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled

.PHONY: help demo test lint ruff types oldest-types bandit docs audit clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo    install into $(VENV) (1.7 GB, everything from PyPI) and show the learner at work'
	@echo 'make test    install the same and run the tests'
	@echo 'make lint    ruff, mypy --strict and bandit'
	@echo 'make docs    build the site into site/'
	@echo 'make audit   known vulnerabilities of what is installed'
	@echo 'make clean   remove what these made'

demo: $(COMPILED)
	@$(VENV)/bin/semiparam demo $(ARGS)

# In the files' order, which ends with short files: by default the files of few tests, and so those
# of few slow ones, come last, and one process works alone.
test: $(COMPILED)
	@$(VENV)/bin/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Two at a time: mypy needs most of a minute for each Python.
lint: $(READY)
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync ruff types oldest-types bandit

ruff: $(READY)
	@$(VENV)/bin/ruff check .

types: $(READY)
	@$(VENV)/bin/mypy

# The oldest Python's library; numpy's types of a newer one are no types to it.
oldest-types: $(READY)
	@$(VENV)/bin/mypy --python-version 3.10 --no-warn-return-any

bandit: $(READY)
	@$(VENV)/bin/bandit -q -c pyproject.toml -r semiparam_dynamics benchmarks fuzz launch tools .ci setup.py

docs: $(READY)
	@$(VENV)/bin/python -c 'import mkdocstrings, latex2mathml, material' 2> /dev/null || \
	    $(VENV)/bin/python -m pip install -q -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --strict --quiet $(ARGS)
	@echo site/index.html

audit: $(READY)
	@$(VENV)/bin/python .ci/audit.py

clean:
	rm -rf $(VENV) site build dist install log demo_out *.egg-info

# Where a ROS 2 installation is sourced its rclpy is used, and pip, which keeps the numpy it was
# built for. Elsewhere ROS 2 comes as wheels; uv resolves these in seconds where pip takes a minute,
# but doesn't read pip's configuration: where it fails, pip gets its turn.
$(READY): setup.py pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if v >= (3, 10) else \
	    "Python 3.10 or newer is needed; $(PYTHON) is %d.%d (make PYTHON=python3.12 names another)" % v)'
	@$(PYTHON) -m venv --clear --without-pip --system-site-packages $(VENV)
	@set -e; \
	if $(VENV)/bin/python -c 'import rclpy' 2> /dev/null; then \
	    echo "1/2 making $(VENV) on this machine's ROS 2"; \
	    $(PYTHON) -m venv --clear --system-site-packages $(VENV); \
	    echo "2/2 installing what ROS 2 doesn't bring (a minute or two)"; \
	    $(VENV)/bin/python -m pip install -q -e '.[sim,vision,camera,distributed,test]'; \
	else \
	    $(PYTHON) -c 'import sys; sys.exit(None if sys.version_info < (3, 14) else \
	        "The tests need idyntree, which has no wheel for Python 3.14: make PYTHON=python3.13 names another")'; \
	    echo "1/2 making $(VENV)"; \
	    $(PYTHON) -m venv --clear $(VENV); \
	    echo "2/2 installing ROS 2 and everything else from PyPI (1.7 GB on disk)"; \
	    index=$${PIP_INDEX_URL:-$$($(VENV)/bin/python -m pip config get global.index-url 2> /dev/null || true)}; \
	    { $(VENV)/bin/python -m pip install -q uv && \
	      VIRTUAL_ENV='$(abspath $(VENV))' $${index:+env UV_DEFAULT_INDEX="$$index"} \
	      $(VENV)/bin/uv pip install -q -e '.[ros,sim,vision,camera,distributed,test]'; } || \
	    { echo "    once more, with pip (a minute or two)"; \
	      $(VENV)/bin/python -m pip install -q -e '.[ros,sim,vision,camera,distributed,test]'; }; \
	fi
	@touch $@

# Once, for all processes: each of several that find nothing would compile for itself.
$(COMPILED): $(READY)
	@$(VENV)/bin/semiparam compile
	@touch $@
