"""Which requests take part in a step, and with how many tokens."""
