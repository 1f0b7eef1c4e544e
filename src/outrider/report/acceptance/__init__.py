"""The report on acceptance from any source, on a terminal, as Markdown, JSON and HTML."""
