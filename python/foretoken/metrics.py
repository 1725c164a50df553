"""Counts of requests and of the engine, under vLLM's names."""

from __future__ import annotations

from dataclasses import dataclass

from foretoken import _core


@dataclass
class RequestMetrics:
    """Sums over the choices of a request; complete when it is finished."""

    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_generation_tokens: int = 0
    num_steps: int = 0
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0  # without bonus and corrected tokens
    num_preemptions: int = 0
    queued_time: float = 0.0  # seconds until the first step
    arrival_time: float = 0.0  # seconds since the epoch
    first_token_latency: float = 0.0  # seconds from arrival
    last_token_latency: float = 0.0

    def add(self, stats: _core.Stats) -> None:
        self.num_prompt_tokens = stats.num_prompt_tokens
        self.num_cached_tokens = max(self.num_cached_tokens, stats.num_cached_tokens)
        self.num_generation_tokens += stats.num_output_tokens
        self.num_steps += stats.num_steps
        self.num_drafts += stats.num_drafts
        self.num_draft_tokens += stats.num_draft_tokens
        self.num_accepted_tokens += stats.num_accepted_tokens
        self.num_preemptions += stats.num_preemptions
        self.queued_time = max(self.queued_time, stats.queue_seconds)


@dataclass
class Metric:
    name: str
    labels: dict[str, str]


@dataclass
class Counter(Metric):
    value: int


@dataclass
class Vector(Metric):
    values: list[int]


@dataclass
class Gauge(Metric):
    value: float


@dataclass
class Histogram(Metric):
    """A type of vLLM's; get_metrics() has none of them."""

    count: int
    sum: float
    buckets: dict[str, int]


def snapshot(engine: _core.Engine, model_name: str) -> list[Metric]:
    """The engine's counters since its start."""
    stats, drafters = engine.stats(), engine.info().drafters
    labels = {"model_name": model_name, "engine": "0"}
    sums = stats.requests
    used = stats.num_total_blocks - stats.num_free_blocks
    metrics: list[Metric] = [
        Gauge("vllm:num_requests_running", labels, float(stats.num_running_requests)),
        Gauge("vllm:num_requests_waiting", labels, float(stats.num_waiting_requests)),
        Gauge("vllm:kv_cache_usage_perc", labels, used / max(stats.num_total_blocks, 1)),
        Counter("vllm:request_success", labels, stats.num_finished_requests),
        Counter("vllm:prompt_tokens", labels, sums.num_prompt_tokens),
        Counter("vllm:generation_tokens", labels, sums.num_output_tokens),
        Counter("vllm:prefix_cache_queries", labels, sums.num_prompt_tokens),
        Counter("vllm:prefix_cache_hits", labels, sums.num_cached_tokens),
        Counter(
            "vllm:external_prefix_cache_queries", labels, stats.num_offload_queried_tokens
        ),
        Counter("vllm:external_prefix_cache_hits", labels, stats.num_offload_hit_tokens),
        Counter("vllm:num_preemptions", labels, sums.num_preemptions),
    ]
    if drafters:
        most = max(num_tokens for _, num_tokens in drafters)
        per_pos = list(sums.num_accepted_tokens_per_pos)[:most]
        metrics += [
            Counter("vllm:spec_decode_num_drafts", labels, sums.num_drafts),
            Counter("vllm:spec_decode_num_draft_tokens", labels, sums.num_draft_tokens),
            Counter("vllm:spec_decode_num_accepted_tokens", labels, sums.num_accepted_tokens),
            Vector("vllm:spec_decode_num_accepted_tokens_per_pos", labels, per_pos),
        ]
    return metrics
