"""The engine behind an OpenAI-compatible API."""
