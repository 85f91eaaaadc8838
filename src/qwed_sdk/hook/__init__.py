"""Hook of coding agents: decides about one tool call; `qwed hook` is the command around it."""
