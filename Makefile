# Every verb of the project. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help setup run test test-postgres test-crewai test-servers check drill bench docs pins clean

BIN := .venv/bin
# Where something about CrewAI is tested; -k leaves the rest of these files to `make test`.
CREWAI_TESTS := tests/frameworks/crewai tests/frameworks/test_table.py tests/docs/test_pages.py tests/docs/test_examples.py
# What is said of every store, and is shown on SQLite by `make test`.
POSTGRES_TESTS := tests/spec tests/seeds
# Three processes run the tests and start hundreds more: what one of them has compiled, the others read.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv with everything pinned in constraints.txt; does nothing when it is up to date
	@sh scripts/setup

run: setup ## start the server on http://127.0.0.1:8000, data in ./data
	@$(BIN)/qwed serve --data-dir data

test: setup ## run the tests
	@$(BIN)/pytest -n 2 --dist worksteal -m "not drill" --ignore tests/servers

test-postgres: setup ## run what reads out the protocol on PostgreSQL, which is started for it
	@$(BIN)/pytest -n 2 --dist worksteal -m "not drill" --store postgres $(POSTGRES_TESTS)

test-crewai: ## run the tests, the page and the example of CrewAI in .venv-crewai, which is made first
	@sh scripts/setup-crewai
	@.venv-crewai/bin/pytest $(CREWAI_TESTS) -k crewai

test-servers: setup ## stand the proxy before published MCP servers, one of them in .venv-servers, which is made first
	@sh scripts/setup-servers
	@$(BIN)/pytest -n 2 --dist loadfile tests/servers

check: setup ## format, lint, types, imports, and that every statement of the documents has its test
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.conformance

drill: setup ## run the heavier campaigns; one table at the end
	@$(BIN)/pytest -n 2 --dist worksteal -m drill

bench: setup ## measure, as ratios, in one table
	@$(BIN)/python -m benchmarks

docs: setup ## write the generated tables of docs/ anew
	@$(BIN)/python scripts/docs.py

pins: ## choose the newest versions pyproject.toml allows and write constraints.txt and its two siblings
	@sh scripts/pins

clean: ## remove .venv, .venv-crewai, .venv-servers and every cache; data/ stays
	rm -rf .venv .venv-crewai .venv-servers dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
