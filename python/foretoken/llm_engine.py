"""An engine that is driven step by step, as vLLM's LLMEngine."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretoken import _core
from foretoken._client import EngineClient
from foretoken._other_names import OtherAttributes
from foretoken._tracker import Output, RequestTracker
from foretoken.engine_args import EngineArgs
from foretoken.lora_request import LoRARequest, check_lora
from foretoken.metrics import Metric, snapshot
from foretoken.pooling_params import PoolingParams
from foretoken.sampling_params import RequestOutputKind, SamplingParams
from foretoken.tokenizer import Tokenizer

_POLL_MS = 200


@dataclass
class ModelConfig:
    model: str
    max_model_len: int
    dtype: str
    vocab_size: int

    def get_vocab_size(self) -> int:
        return self.vocab_size


class LLMEngine(OtherAttributes):
    """Requests go in by add_request, outputs come out of step. Thread-safe."""

    def __init__(self, args: EngineArgs) -> None:
        self.client = EngineClient(args)
        self._inbox = _core.OutputInbox()
        self._open: dict[int, RequestTracker] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, **_: Any) -> LLMEngine:
        return cls(engine_args)

    def add_request(
        self,
        request_id: str,
        prompt: object,
        params: SamplingParams | PoolingParams,
        arrival_time: float | None = None,
        lora_request: LoRARequest | None = None,
        priority: int = 0,
        *,
        tokenization_kwargs: Mapping[str, Any] | None = None,
        trace_headers: object = None,
    ) -> None:
        """Starts a request; raises what is wrong with it. `trace_headers` have no effect."""
        prepared = self.client.prepare(
            prompt,
            params,
            priority,
            str(request_id),
            check_lora(lora_request),
            tokenization_kwargs,
        )
        kind = RequestOutputKind.FINAL_ONLY
        if isinstance(params, SamplingParams):
            kind = params.output_kind
        with self._lock:
            tracker = self.client.submit(self._inbox, prepared, kind)
            self._open[tracker.key] = tracker

    def step(self) -> list[Output]:
        """Waits for news of any request; empty when none is open. Ctrl-C ends the wait."""
        while self._open:
            if not self._inbox.wait(_POLL_MS):
                continue
            with self._lock:
                outputs = self._take()
            if outputs:
                return outputs
        return []

    def _take(self) -> list[Output]:
        outputs = []
        for update in self._inbox.take():
            tracker = self._open.get(update.key)
            if tracker is None:
                continue
            tracker.apply(update)
            if tracker.finished:
                del self._open[update.key]
            outputs.append(tracker.output())
        return outputs

    def abort_request(self, request_ids: str | list[str]) -> None:
        """Ends requests soon; their last outputs have finish_reason "abort"."""
        for request_id in [request_ids] if isinstance(request_ids, str) else request_ids:
            self.client.core.abort(request_id)

    def has_unfinished_requests(self) -> bool:
        return bool(self._open)

    def get_num_unfinished_requests(self) -> int:
        return len(self._open)

    def reset_prefix_cache(self, *_: object, **__: object) -> bool:
        """Requests from now on find nothing that was cached before."""
        self.client.reset_prefix_cache()
        return True

    def get_tokenizer(self) -> Tokenizer:
        return self.client.tokenizer()

    def get_metrics(self) -> list[Metric]:
        return snapshot(self.client.core, self.client.model_name())

    @property
    def model_config(self) -> ModelConfig:
        info = self.client.info
        name = self.client.model_name()
        return ModelConfig(name, info.max_model_len, info.dtype, info.vocab_size)

    def get_model_config(self) -> ModelConfig:
        return self.model_config

    def shutdown(self) -> None:
        """Ends all requests and frees the engine."""
        self.client.close()
