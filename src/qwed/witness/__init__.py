"""Publishes log heads outside the database, and checks the log against them."""
