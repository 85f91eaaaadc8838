"""Dated rates, each with its source; what is not in a table is not computed."""
