"""Offline inference: vLLM's LLM."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foretoken import _core
from foretoken._other_names import OtherAttributes
from foretoken._progress import Progress
from foretoken._tracker import Output, RequestError, RequestTracker
from foretoken.beam_search import BeamSearchOutput, beam_search
from foretoken.engine_args import EngineArgs
from foretoken.inputs import Prompt, parse_prompts, truncation_of
from foretoken.llm_engine import LLMEngine, ModelConfig
from foretoken.lora_request import LoRARequest, LoRARequests, check_lora
from foretoken.metrics import Metric
from foretoken.outputs import (
    EmbeddingOutput,
    EmbeddingRequestOutput,
    PoolingOutput,
    PoolingRequestOutput,
    RequestOutput,
    ScoringOutput,
    ScoringRequestOutput,
)
from foretoken.pooling_params import PoolingParams
from foretoken.sampling_params import BeamSearchParams, RequestOutputKind, SamplingParams
from foretoken.tokenizer import Tokenizer

_POLL_MS = 200

Message = Mapping[str, Any]
UseTqdm = bool | Callable[..., Any]


class LLM(OtherAttributes):
    """A model that answers many prompts together. Several threads may call it at once."""

    def __init__(self, model: str = "", **kwargs: Any) -> None:
        kwargs.setdefault("disable_log_stats", True)
        # Whoever calls waits for all answers: prompts fill their steps.
        kwargs.setdefault("long_prefill_token_threshold", 0)
        self.llm_engine = LLMEngine(EngineArgs.from_kwargs(model=model, **kwargs))
        self._client = self.llm_engine.client

    def generate(
        self,
        prompts: object = None,
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        prompt_token_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
        use_tqdm: UseTqdm = True,
        lora_request: LoRARequests = None,
        priority: Sequence[int] | None = None,
        tokenization_kwargs: Mapping[str, Any] | None = None,
        mm_processor_kwargs: Mapping[str, Any] | None = None,
    ) -> list[RequestOutput]:
        """Answers in the order of the prompts.

        A fault of any prompt or parameter is raised, and the other prompts are dropped. What fails
        later ends its own request, with a warning: finish_reason is then "error", and `error` tells
        why.
        """
        if prompt_token_ids is not None:
            if prompts is not None:
                raise ValueError("give prompts or prompt_token_ids, not both")
            prompts = prompt_token_ids
        parsed = parse_prompts(prompts)
        params = _each(sampling_params or self.get_default_sampling_params(), len(parsed))
        params = _truncated(params, truncation_of(tokenization_kwargs, mm_processor_kwargs))
        outputs = self._run(parsed, params, priority, use_tqdm, lora_request)
        return [output for output in outputs if isinstance(output, RequestOutput)]

    def chat(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        use_tqdm: UseTqdm = True,
        lora_request: LoRARequests = None,
        chat_template: str | None = None,
        chat_template_content_format: str = "auto",
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        priority: Sequence[int] | None = None,
        tokenization_kwargs: Mapping[str, Any] | None = None,
        mm_processor_kwargs: Mapping[str, Any] | None = None,
    ) -> list[RequestOutput]:
        """The answers to one conversation, or to each of a list of them.

        Contents become what the template takes, whatever `chat_template_content_format` says.
        """
        if not messages or isinstance(messages, str):
            raise ValueError('chat needs a list of at least one message {"role", "content"}')
        if chat_template_content_format not in ("auto", "string", "openai"):
            raise ValueError(
                f"chat_template_content_format {chat_template_content_format!r} is unknown; use "
                "'auto', 'string' or 'openai'"
            )
        arguments: dict[str, Any] = {
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": continue_final_message,
            "chat_template_kwargs": dict(chat_template_kwargs or {}),
        }
        if tools is not None:
            arguments["tools"] = list(tools)
        prompts = [
            self._client.render(conversation, arguments, chat_template)
            for conversation in _conversations(messages)
        ]
        return self.generate(
            prompts,
            sampling_params,
            use_tqdm=use_tqdm,
            lora_request=lora_request,
            priority=priority,
            tokenization_kwargs=tokenization_kwargs,
            mm_processor_kwargs=mm_processor_kwargs,
        )

    def encode(
        self,
        prompts: object,
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        *,
        use_tqdm: UseTqdm = True,
        lora_request: LoRARequests = None,
        pooling_task: str | None = None,
        truncate_prompt_tokens: int | None = None,
        tokenization_kwargs: Mapping[str, Any] | None = None,
    ) -> list[PoolingRequestOutput[PoolingOutput]]:
        """The pooled state of each prompt. Raises RequestError where one fails."""
        parsed = parse_prompts(prompts)
        fallback = PoolingParams(task=pooling_task)  # says which tasks are not built
        params = _each(pooling_params or fallback, len(parsed))
        most = truncation_of(tokenization_kwargs, None)
        if truncate_prompt_tokens is not None:
            most = truncate_prompt_tokens
        params = _truncated(params, most)
        outputs = self._run(parsed, params, None, use_tqdm, lora_request)
        return [output for output in outputs if isinstance(output, PoolingRequestOutput)]

    def embed(
        self,
        prompts: object,
        *,
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        use_tqdm: UseTqdm = True,
        lora_request: LoRARequests = None,
        truncate_prompt_tokens: int | None = None,
        tokenization_kwargs: Mapping[str, Any] | None = None,
    ) -> list[EmbeddingRequestOutput]:
        """The embedding of each prompt."""
        pooled = self.encode(
            prompts,
            pooling_params,
            use_tqdm=use_tqdm,
            lora_request=lora_request,
            truncate_prompt_tokens=truncate_prompt_tokens,
            tokenization_kwargs=tokenization_kwargs,
        )
        return [
            EmbeddingRequestOutput(
                output.request_id,
                EmbeddingOutput(output.outputs.data),
                output.prompt_token_ids,
                output.num_cached_tokens,
                output.finished,
            )
            for output in pooled
        ]

    def score(
        self,
        data_1: str | Sequence[str],
        data_2: str | Sequence[str],
        *,
        use_tqdm: UseTqdm = True,
        lora_request: LoRARequests = None,
        truncate_prompt_tokens: int | None = None,
        tokenization_kwargs: Mapping[str, Any] | None = None,
    ) -> list[ScoringRequestOutput]:
        """The cosine of the embeddings of each pair; one text may stand against many."""
        first = [data_1] if isinstance(data_1, str) else list(data_1)
        second = [data_2] if isinstance(data_2, str) else list(data_2)
        if len(first) not in (1, len(second)):
            raise ValueError(
                f"score pairs {len(first)} with {len(second)} texts; give 1 or equally many"
            )
        params = PoolingParams(normalize=True)
        outputs = self.embed(
            first + second,
            pooling_params=params,
            use_tqdm=use_tqdm,
            lora_request=lora_request,
            truncate_prompt_tokens=truncate_prompt_tokens,
            tokenization_kwargs=tokenization_kwargs,
        )
        queries, answers = outputs[: len(first)], outputs[len(first) :]
        if len(queries) == 1:
            queries = queries * len(answers)
        scores = []
        for query, answer in zip(queries, answers):
            value = ScoringOutput(
                _core.embedding_score(query.outputs.embedding, answer.outputs.embedding)
            )
            ids = query.prompt_token_ids + answer.prompt_token_ids
            scores.append(ScoringRequestOutput(answer.request_id, value, ids))
        return scores

    def beam_search(
        self,
        prompts: object,
        params: BeamSearchParams,
        lora_request: LoRARequests = None,
        use_tqdm: UseTqdm = False,
        concurrency_limit: int | None = None,
    ) -> list[BeamSearchOutput]:
        """The likeliest continuations of each prompt.

        `concurrency_limit`: most prompts that are searched at once.
        """
        parsed = parse_prompts(prompts)
        adapters = _adapters(lora_request, len(parsed))
        size = max(concurrency_limit or len(parsed), 1)
        found: list[BeamSearchOutput] = []
        for i in range(0, len(parsed), size):
            found += beam_search(
                self, parsed[i : i + size], params, adapters[i : i + size], use_tqdm
            )
        return found

    def classify(self, *_: object, **__: object) -> None:
        raise NotImplementedError("classification heads are not built; use embed()")

    def reward(self, *_: object, **__: object) -> None:
        raise NotImplementedError("reward heads are not built; use embed()")

    def get_tokenizer(self) -> Tokenizer:
        return self.llm_engine.get_tokenizer()

    def get_default_sampling_params(self) -> SamplingParams:
        """What the model's generation config asks for; a new object each time."""
        return self._client.default_sampling_params()

    def get_metrics(self) -> list[Metric]:
        return self.llm_engine.get_metrics()

    @property
    def model_config(self) -> ModelConfig:
        return self.llm_engine.model_config

    def sleep(self, level: int = 1, mode: str = "abort") -> None:
        """Gives back the device's memory until wake_up().

        Level 1 keeps weights in host memory, level 2 reads them from their files again. Needs
        enable_sleep_mode=True. Requests that run end ("abort") or are waited for ("wait"); later
        ones wait.
        """
        self._client.sleep(level, mode)

    def wake_up(self, tags: list[str] | None = None) -> None:
        """Takes back the memory of "weights", "kv_cache", or both (None), and then goes on."""
        self._client.wake_up(tags)

    def is_sleeping(self) -> bool:
        return self._client.core.is_sleeping()

    def reset_prefix_cache(self) -> bool:
        """Requests from now on find nothing that was cached before."""
        self._client.reset_prefix_cache()
        return True

    def shutdown(self) -> None:
        """Ends all requests and frees the engine; so does dropping the object."""
        self.llm_engine.shutdown()

    def _run(
        self,
        prompts: list[Prompt],
        params: Sequence[SamplingParams | PoolingParams],
        priority: Sequence[int] | None,
        use_tqdm: UseTqdm,
        lora_request: LoRARequests,
    ) -> list[Output]:
        ranks = _priorities(priority, len(prompts))
        adapters = _adapters(lora_request, len(prompts))
        prepared = [
            self._client.prepare(prompt, chosen, rank, lora_request=adapter)
            for prompt, chosen, rank, adapter in zip(prompts, params, ranks, adapters)
        ]
        inbox = _core.OutputInbox()
        trackers: list[RequestTracker] = []
        try:
            for item in prepared:
                trackers.append(self._client.submit(inbox, item, RequestOutputKind.FINAL_ONLY))
            self._wait(inbox, trackers, use_tqdm)
        except BaseException:
            for tracker in trackers:
                if not tracker.finished and not self._client.core.closed:
                    self._client.core.abort(tracker.request_id)
            raise
        _warn_of_errors(trackers)
        return [tracker.output() for tracker in trackers]

    @staticmethod
    def _wait(
        inbox: _core.OutputInbox, trackers: Sequence[RequestTracker], use_tqdm: UseTqdm
    ) -> None:
        waiting = {tracker.key: tracker for tracker in trackers}
        with Progress(use_tqdm, len(trackers)) as progress:
            while waiting:
                inbox.wait(_POLL_MS)
                for update in inbox.take():
                    tracker = waiting[update.key]
                    tracker.apply(update)
                    if tracker.finished:
                        del waiting[update.key]
                        progress.note(tracker)
        for tracker in trackers:
            if tracker.error is not None and tracker.pools:
                raise RequestError(tracker.error)


def _adapters(lora_request: LoRARequests, count: int) -> list[LoRARequest | None]:
    if not isinstance(lora_request, Sequence):
        return [check_lora(lora_request)] * count
    if len(lora_request) != count:
        raise ValueError(f"{len(lora_request)} lora_request for {count} prompts; give one for each")
    return [check_lora(each) for each in lora_request]


def _each(params: Any, count: int) -> list[Any]:
    if not isinstance(params, Sequence):
        return [params] * count
    if len(params) != count:
        raise ValueError(f"{count} prompts need as many parameters, not {len(params)}")
    return list(params)


def _truncated(params: list[Any], most: int | None) -> list[Any]:
    if most is None:
        return params
    return [dataclasses.replace(each, truncate_prompt_tokens=most) for each in params]


def _warn_of_errors(trackers: Sequence[RequestTracker]) -> None:
    """Texts of requests that failed look like empty answers."""
    failed = [tracker for tracker in trackers if tracker.error is not None]
    if failed:
        warnings.warn(
            f"{len(failed)} of {len(trackers)} requests failed (finish_reason 'error'); the first: "
            f"{failed[0].error}",
            RuntimeWarning,
            stacklevel=4,
        )


def _priorities(priority: Sequence[int] | None, count: int) -> list[int]:
    if priority is None:
        return [0] * count
    if len(priority) != count:
        raise ValueError(f"{count} prompts need as many priorities, not {len(priority)}")
    return list(priority)


def _conversations(messages: Sequence[Any]) -> list[Sequence[Message]]:
    return list(messages) if isinstance(messages[0], (list, tuple)) else [messages]
