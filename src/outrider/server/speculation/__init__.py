"""The speculative configuration: what a user asks for, what it resolves to, and what is built."""
