"""Agents: registration, lifecycle, trust, budget, actions and executions."""
