"""Spec 7.3: what an auditor is handed about an agent, as PDF, JSON or CSV. Pure: figures in, bytes out."""
