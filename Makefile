# Every verb of the project. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help setup run test test-postgres test-crewai test-servers test-pythons check drill bench docs pins clean

BIN := .venv/bin
# CrewAI tests; -k leaves the rest of these files to `make test`.
CREWAI_TESTS := tests/frameworks/crewai tests/frameworks/test_table.py tests/docs/test_pages.py tests/docs/test_examples.py
# Tests that hold for every store; `make test` runs them on SQLite.
POSTGRES_TESTS := tests/spec tests/seeds tests/property/test_two_stores.py
# The tests start hundreds of processes, which share compiled bytecode.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: ## create .venv with the versions in constraints.txt; does nothing when it is up to date
	@sh scripts/setup

run: setup ## start the server on http://127.0.0.1:8000, data in ./data
	@$(BIN)/qwed serve --data-dir data

test: setup ## run the tests
	@$(BIN)/pytest -n 2 --dist worksteal -m "not drill" --ignore tests/servers

test-postgres: setup ## run the protocol tests on a PostgreSQL server that the tests start
	@$(BIN)/pytest -n 2 --dist worksteal -m "not drill" --store postgres $(POSTGRES_TESTS)

test-crewai: ## run the CrewAI tests, page and example in .venv-crewai
	@sh scripts/setup-crewai
	@.venv-crewai/bin/pytest $(CREWAI_TESTS) -k crewai

test-servers: setup ## run the MCP proxy in front of published MCP servers, one of them in .venv-servers
	@sh scripts/setup-servers
	@$(BIN)/pytest -n 2 --dist loadfile tests/servers

test-pythons: ## run the tests on each of Python 3.11, 3.12 and 3.13 that this machine has, in .venv-3.11, ...
	@sh scripts/test-pythons

check: setup ## check format, lint, types, imports, and that every statement of the specification has its test
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.conformance

drill: setup ## run the heavier fault and attack campaigns; prints one table
	@$(BIN)/pytest -n 2 --dist worksteal -m drill

bench: setup ## measure ratios and write docs/benchmark.md
	@$(BIN)/python -m benchmarks

docs: setup ## write the generated tables of docs/ and build the site in site/; a broken link fails
	@$(BIN)/python scripts/docs.py
	@$(BIN)/python -m zensical build --strict --clean
	@echo "qwed: to read the site: $(BIN)/python -m http.server --directory site --bind 127.0.0.1 8001"

pins: ## resolve the newest versions that pyproject.toml allows into the three constraints files
	@sh scripts/pins

clean: ## remove every .venv* and every cache; data/ stays
	rm -rf .venv .venv-* dist site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
