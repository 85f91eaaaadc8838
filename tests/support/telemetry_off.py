"""Environment variables that turn off the telemetry of third-party programs."""

CREWAI = {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}
