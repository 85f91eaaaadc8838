"""Sections of the specification covered by these tests; a coverage test keeps the list complete."""

import pytest

SPEC: dict[str, str] = {
    "1.1": "Purpose",
    "1.2": "Problem Statement",
    "1.3": "Solution",
    "1.4": "Terminology",
    "2.1": "Verification Flow",
    "2.2": "Verification Types for Agents",
    "2.3": "Decision Matrix",
    "3.1": "Registration Request",
    "3.2": "Registration Response",
    "3.3": "Agent Types",
    "3.4": "Agent Identity",
    "4.1": "Agent Verification Request",
    "4.2": "Verification Response",
    "4.3": "Decision Types",
    "5.1": "Tool Call Request",
    "5.2": "Tool Risk Assessment",
    "5.3": "Tool Registry",
    "6.1": "Budget Schema",
    "6.2": "Budget Enforcement",
    "6.3": "Budget Response",
    "7.1": "Activity Log Schema",
    "7.2": "Audit Query API",
    "7.3": "Compliance Export",
    "8.1": "Trust Level Definitions",
    "8.2": "Trust Elevation",
    "8.3": "Trust Degradation",
    "9.1": "Action Context Requirements",
    "9.2": "Replay Detection",
    "9.3": "Repetitive Loop Detection",
    "9.4": "In-Flight Reservations",
    "9.5": "Budget Denial Semantics",
    "9.6": "Fail-Closed Rate Limiting",
    "9.7": "Environment Integrity",
    "9.8": "Timing-Safe Authentication",
    # The document uses the numbers 9.1 to 9.3 again for the three sections below, which are in its chapter 10.
    "10.1": "SDK Integration",
    "10.2": "LangChain Integration",
    "10.3": "CrewAI Integration",
    "A": "Error Codes",
    "B": "HTTP Endpoints",
}

GUIDE: dict[str, str] = {
    f"guide/{title}": title
    for title in (
        "Overview",
        "Registering an Agent",
        "Verifying actions",
        "Conversation controls",
        "How it works",
        "Incrementing steps correctly",
        "Progress-aware doom loop detection (LOOP-004)",
        "Trust Levels",
        # Printed twice without a heading: between Trust Levels and Risk assessment, and below the matrix.
        "Tool approval",
        "Risk assessment",
        "Decision matrix",
        "Budget Enforcement",
        "Activity logging",
        "Runtime hardening",
        "Action context enforcement",
        "Replay and loop detection",
        "In-flight reservation system",
        "Budget denial behavior",
        "Fail-closed rate limiting",
        "Environment integrity verification",
        "Timing-safe token verification",
        "Framework integration",
    )
}

SECTIONS = SPEC | GUIDE

LATER: dict[str, str] = {}
"""Sections without a test, each with its reason; a section that has gained a test must leave this table."""


def spec(*sections: str) -> pytest.MarkDecorator:
    """Mark a test with the sections it shows, such as `9.2` or `guide/Decision matrix`."""
    return pytest.mark.spec(*sections)
