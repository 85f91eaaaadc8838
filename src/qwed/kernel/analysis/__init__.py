"""Static analysis of an action: effects, allowlists, secrets and executable text."""
