"""How answers are worded, in bodies and in chunks."""
