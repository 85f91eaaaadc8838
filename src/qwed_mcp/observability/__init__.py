"""What an agent is made of, written down."""
