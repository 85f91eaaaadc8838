# Every verb of the project. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help setup run test check drill bench docs pins clean

BIN := .venv/bin
# Three processes run the tests and start hundreds more: what one of them has compiled, the others read.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv with everything pinned in constraints.txt; does nothing when it is up to date
	@sh scripts/setup

run: setup ## start the server on http://127.0.0.1:8000, data in ./data
	@$(BIN)/qwed serve --data-dir data

test: setup ## run the tests
	@$(BIN)/pytest -n 2 -m "not drill"

check: setup ## format, lint, types, imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports

drill: setup ## run the heavier campaigns
	@$(BIN)/pytest -n 2 -m drill

bench: setup ## measure, as ratios, in one table
	@$(BIN)/python -m benchmarks

docs: setup ## write the generated tables of docs/ anew
	@$(BIN)/python scripts/docs.py

pins: ## choose the newest versions pyproject.toml allows and write constraints.txt
	@sh scripts/pins

clean: ## remove .venv and every cache; data/ stays
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
