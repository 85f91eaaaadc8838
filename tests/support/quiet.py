"""Variables that keep other people's programs from telling anybody about a test."""

CREWAI = {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}
