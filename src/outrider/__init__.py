"""Outrider: does speculative decoding pay on your prompts, hardware and load?"""

__version__ = "0.1.0"
