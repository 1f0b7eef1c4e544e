"""The settings of a replay side by side, and which of them pays."""
