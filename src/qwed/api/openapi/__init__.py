"""OpenAPI document and the /docs page generated from it."""
