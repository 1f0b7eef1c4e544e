"""Everything that `outrider serve` is told."""

from dataclasses import dataclass
from typing import Literal

from outrider.errors import InvalidSetting
from outrider.server.api.settings import RequestLimits, SpecDecodeMetrics
from outrider.server.running import ListenSettings
from outrider.server.service.building import EngineSettings
from outrider.server.speculation.config import SpeculativeConfig

GenerationConfig = Literal["auto", "vllm"]
"""Whether what the model's makers recommend for sampling is taken, or nothing is, as vLLM says."""
LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """A model and how to serve it, validated.

    At most `max_queued_requests` answers wait beside those that run. Raises InvalidSetting where
    others could reach the server without a key, and for metrics of a speculation that is not there.
    """

    model: str
    served_model_names: tuple[str, ...] = ()
    engine: EngineSettings
    listen: ListenSettings
    limits: RequestLimits
    speculation: SpeculativeConfig | None = None
    seed: int | None = None
    chat_template: str | None = None
    generation_config: GenerationConfig = "auto"
    api_keys: tuple[str, ...] = ()
    insecure: bool = False
    max_queued_requests: int = 256
    spec_decode_metrics: SpecDecodeMetrics = "none"
    timing_metrics: bool = False
    strict_vllm_metrics: bool = False
    log_stats: bool = True

    def __post_init__(self) -> None:
        host = self.listen.host
        if not self.api_keys and not self.insecure and host not in LOCAL:
            raise InvalidSetting(
                f"--host {host} without an API key, so that anybody who reaches it may use it",
                "a key",
                "give --api-key, --api-key-file or OUTRIDER_API_KEY, or --insecure to go without",
            )
        if self.spec_decode_metrics != "none" and self.speculation is None:
            raise InvalidSetting(
                "--per-request-spec-decode-metrics requires speculative decoding",
                "a --speculative-config too",
                "give one, or drop the flag",
            )
        if not all(self.served_model_names):
            raise InvalidSetting(
                "an empty --served-model-name", "a name for requests to use", "write one"
            )
        if self.timing_metrics and not self.log_stats:
            raise InvalidSetting(
                "--enable-per-request-metrics requires engine statistics",
                "them, since they are counted together",
                "drop --disable-log-stats",
            )

    @property
    def model_names(self) -> tuple[str, ...]:
        """What requests may call the model."""
        return self.served_model_names or (self.model,)

    @property
    def capacity(self) -> int:
        """How many answers may run and wait at once."""
        return self.engine.limits.max_num_seqs + self.max_queued_requests
