"""Streams of outputs under asyncio: vLLM's AsyncLLM."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any

from foretoken import _core
from foretoken._client import EngineClient, Prepared
from foretoken._other_names import OtherAttributes
from foretoken._tracker import Output, RequestError, RequestTracker
from foretoken.engine_args import AsyncEngineArgs, EngineArgs
from foretoken.llm_engine import ModelConfig
from foretoken.lora_request import LoRARequest, check_lora
from foretoken.metrics import Metric, snapshot
from foretoken.outputs import PoolingOutput, PoolingRequestOutput, RequestOutput
from foretoken.pooling_params import PoolingParams
from foretoken.sampling_params import RequestOutputKind, SamplingParams
from foretoken.tokenizer import Tokenizer

_LONG_TEXT = 16384  # characters; longer prompts are tokenised off the event loop


class _Stream:
    """One request: updates wait here until its consumer takes them, summed up."""

    def __init__(self, tracker: RequestTracker) -> None:
        self.tracker = tracker
        self._updates: list[_core.Update] = []
        self._arrived = asyncio.Event()

    def deliver(self, update: _core.Update) -> None:
        self._updates.append(update)
        self._arrived.set()

    async def next(self) -> Output:
        await self._arrived.wait()
        self._arrived.clear()
        updates, self._updates = self._updates, []
        for update in updates:
            self.tracker.apply(update)
        return self.tracker.output()


class _LoopOutputs:
    """The open requests of one event loop; only that loop's thread comes here."""

    def __init__(self) -> None:
        self.inbox = _core.OutputInbox()
        self._streams: dict[int, _Stream] = {}

    def add(self, stream: _Stream) -> None:
        if not self._streams:
            asyncio.get_running_loop().add_reader(self.inbox.fd, self._deliver)
        self._streams[stream.tracker.key] = stream

    def remove(self, stream: _Stream) -> None:
        del self._streams[stream.tracker.key]
        if not self._streams:
            asyncio.get_running_loop().remove_reader(self.inbox.fd)

    def _deliver(self) -> None:
        for update in self.inbox.take():
            stream = self._streams.get(update.key)
            if stream is not None:
                stream.deliver(update)


class AsyncLLM(OtherAttributes):
    """An engine for asyncio. Any number may live in a process, and be used by several loops."""

    def __init__(self, model: str | EngineArgs = "", **kwargs: Any) -> None:
        """Loads the model before it returns, as vLLM does."""
        if not isinstance(model, EngineArgs):
            model = AsyncEngineArgs.from_kwargs(model=model, **kwargs)
        elif kwargs:
            raise TypeError("give engine arguments as an object or as keywords, not both")
        self._client = EngineClient(model)
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopOutputs] = (
            weakref.WeakKeyDictionary()
        )

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, **_: Any) -> AsyncLLM:
        return cls(engine_args)

    @classmethod
    def from_vllm_config(cls, *_: object, **__: object) -> AsyncLLM:
        raise NotImplementedError("there is no VllmConfig; use AsyncLLM.from_engine_args")

    async def generate(
        self,
        prompt: object,
        sampling_params: SamplingParams | None = None,
        request_id: str = "",
        *,
        lora_request: LoRARequest | None = None,
        priority: int = 0,
        tokenization_kwargs: Mapping[str, Any] | None = None,
        trace_headers: object = None,
        data_parallel_rank: int | None = None,
    ) -> AsyncGenerator[RequestOutput, None]:
        """The outputs of a request as they come, each as `output_kind` says.

        A consumer that is slow gets fewer, larger outputs. Leaving the loop, closing the generator
        or cancelling its task ends the request. Raises RequestError when the engine gives it up.
        `data_parallel_rank` names the engine of several (`data_parallel_size`) that runs it;
        `trace_headers` have no effect.
        """
        params = sampling_params or self._client.default_sampling_params()
        prepared = await self._prepare(
            prompt, params, priority, request_id, lora_request, tokenization_kwargs
        )
        prepared.name_engine(data_parallel_rank)
        async with aclosing(self._stream(prepared, params.output_kind)) as outputs:
            async for output in outputs:
                if isinstance(output, RequestOutput):
                    yield output

    async def encode(
        self,
        prompt: object,
        pooling_params: PoolingParams | None = None,
        request_id: str = "",
        *,
        lora_request: LoRARequest | None = None,
        priority: int = 0,
        tokenization_kwargs: Mapping[str, Any] | None = None,
        trace_headers: object = None,
        data_parallel_rank: int | None = None,
    ) -> AsyncGenerator[PoolingRequestOutput[PoolingOutput], None]:
        """The pooled state of a prompt: one output."""
        params = pooling_params or PoolingParams()
        prepared = await self._prepare(
            prompt, params, priority, request_id, lora_request, tokenization_kwargs
        )
        prepared.name_engine(data_parallel_rank)
        async with aclosing(self._stream(prepared, RequestOutputKind.FINAL_ONLY)) as outputs:
            async for output in outputs:
                if isinstance(output, PoolingRequestOutput):
                    yield output

    async def _prepare(
        self,
        prompt: object,
        params: SamplingParams | PoolingParams,
        priority: int,
        request_id: str,
        lora_request: LoRARequest | None,
        tokenization_kwargs: Mapping[str, Any] | None,
    ) -> Prepared:
        """An adapter may have to be read; that takes long, too."""
        adapter = check_lora(lora_request)
        text = prompt.get("prompt") if isinstance(prompt, dict) else prompt
        if adapter is not None or (isinstance(text, str) and len(text) > _LONG_TEXT):
            return await asyncio.to_thread(
                self._client.prepare,
                prompt,
                params,
                priority,
                request_id,
                adapter,
                tokenization_kwargs,
            )
        return self._client.prepare(
            prompt, params, priority, request_id, None, tokenization_kwargs
        )

    async def add_lora(self, lora_request: LoRARequest) -> bool:
        """Reads an adapter before a request has it."""
        await asyncio.to_thread(self._client.adapter, lora_request)
        return True

    async def _stream(
        self, prepared: Prepared, kind: RequestOutputKind
    ) -> AsyncGenerator[Output, None]:
        outputs = self._loops.setdefault(asyncio.get_running_loop(), _LoopOutputs())
        stream = _Stream(self._client.submit(outputs.inbox, prepared, kind))
        tracker = stream.tracker
        outputs.add(stream)
        try:
            while not tracker.finished:
                output = await stream.next()
                if tracker.error is not None:
                    raise RequestError(tracker.error)
                yield output
        finally:
            outputs.remove(stream)
            if not tracker.finished and not self._client.core.closed:
                self._client.core.abort(tracker.request_id)

    async def reset_prefix_cache(self, *_: object, **__: object) -> bool:
        """Requests from now on find nothing that was cached before."""
        self._client.reset_prefix_cache()
        return True

    async def abort(self, request_id: str | Iterable[str]) -> None:
        """Ends requests soon; their streams end with finish_reason "abort"."""
        for one in [request_id] if isinstance(request_id, str) else request_id:
            self._client.core.abort(one)

    async def get_tokenizer(self) -> Tokenizer:
        return self._client.tokenizer()

    async def get_model_config(self) -> ModelConfig:
        return self.model_config

    @property
    def model_config(self) -> ModelConfig:
        info = self._client.info
        name = self._client.model_name()
        return ModelConfig(name, info.max_model_len, info.dtype, info.vocab_size)

    def get_default_sampling_params(self) -> SamplingParams:
        return self._client.default_sampling_params()

    def get_metrics(self) -> list[Metric]:
        return snapshot(self._client.core, self._client.model_name())

    async def check_health(self) -> None:
        """Raises when the engine was shut down."""
        self._client.core.stats()

    async def get_supported_tasks(self) -> tuple[str, ...]:
        return ("generate", "embed")

    async def sleep(self, level: int = 1, mode: str = "abort") -> None:
        """As LLM.sleep."""
        await asyncio.to_thread(self._client.sleep, level, mode)

    async def wake_up(self, tags: list[str] | None = None) -> None:
        await asyncio.to_thread(self._client.wake_up, tags)

    async def is_sleeping(self) -> bool:
        return self._client.core.is_sleeping()

    async def is_paused(self) -> bool:
        return False

    async def is_tracing_enabled(self) -> bool:
        return False

    async def do_log_stats(self) -> None:
        """Has no effect: see get_metrics."""

    @property
    def is_running(self) -> bool:
        return not self._client.core.closed

    @property
    def is_stopped(self) -> bool:
        return self._client.core.closed

    @property
    def errored(self) -> bool:
        return self._client.core.closed

    def shutdown(self, timeout: float | None = None) -> None:
        """Ends all requests and frees the engine; so does dropping the object."""
        self._client.close()


AsyncLLMEngine = AsyncLLM
