"""Spec 7.3: what an auditor is handed about one agent and one period, as PDF, JSON or CSV. Pure: figures in, bytes out."""
