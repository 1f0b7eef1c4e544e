"""How much of a draft to verify, by what it costs and what it promises."""
