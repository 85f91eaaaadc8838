"""Domain rules: pure functions over agents, conversations, budgets, behaviour, evidence and changes."""
