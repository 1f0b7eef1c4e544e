"""Configurations that most tests start from."""

import json
from typing import Any

from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.reading import read_speculative_config
from outrider.server.speculation.resolved import ResolvedSpeculation
from outrider.server.speculation.resolving import resolve
from outrider.server.speculation.target_facts import TargetFacts

TARGET = TargetFacts("org/target")


def read(**settings: Any) -> SpeculativeConfig:
    """What `settings` say as JSON on the command line."""
    config = read_speculative_config(json.dumps(settings))
    assert config is not None
    return config


def ngram(**settings: Any) -> ResolvedSpeculation:
    """n-gram drafting with K = 4, as far as `settings` say nothing else, resolved."""
    return resolve(read(**{"method": "ngram", "num_speculative_tokens": 4, **settings}), TARGET)
