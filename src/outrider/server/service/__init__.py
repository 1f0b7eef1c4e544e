"""The engine at work in a thread of its own, and how requests reach it."""
