"""Implementation of `verify_banking_scenario`: scenario parsers, solutions and claims."""
