"""Response models in the formats of the specification."""
