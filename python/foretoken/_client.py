"""What LLMEngine and AsyncLLM share: an engine, and requests on their way into it."""

from __future__ import annotations

import atexit
import itertools
import json
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foretoken import _core
from foretoken._logits import wrap_processor
from foretoken._tracker import RequestTracker
from foretoken._values import to_json, whole_text
from foretoken.engine_args import EngineArgs
from foretoken.inputs import Prompt, parse_prompt, truncation_of
from foretoken.lora_request import LoRARequest
from foretoken.pooling_params import PoolingParams
from foretoken.sampling_params import RequestOutputKind, SamplingParams
from foretoken.tokenizer import Tokenizer

_keys = itertools.count(1)
_open: weakref.WeakSet[EngineClient] = weakref.WeakSet()
_logging_ready = False


def _init_logging() -> None:
    global _logging_ready
    if not _logging_ready:
        _core.init_logging(os.environ.get("FORETOKEN_LOGGING_LEVEL", "warning").lower())
        _logging_ready = True


@atexit.register
def _close_all() -> None:
    """Before the interpreter goes: afterwards no thread of an engine could take the GIL."""
    for client in list(_open):
        client.close()


class Prepared:
    """A request that only has to be submitted."""

    def __init__(
        self,
        fields: dict[str, Any],
        prompt: str | None,
        prompt_token_ids: list[int],
        params: SamplingParams | PoolingParams,
        processors: list[Callable[..., None]],
    ) -> None:
        self.fields = fields
        self.prompt = prompt
        self.prompt_token_ids = prompt_token_ids
        self.params = params
        self.processors = processors

    def name_engine(self, number: int | None) -> None:
        """The one of several data parallel engines that runs it; None: that with the least to do."""
        if number is not None:
            self.fields["data_parallel_rank"] = number


class EngineClient:
    """An engine, its arguments and its tokenizer. Thread-safe."""

    def __init__(self, args: EngineArgs) -> None:
        _init_logging()
        self.args = args
        self.core = _core.Engine.make(json.dumps(args.core_fields()))
        self.info = self.core.info()
        self.pooling = args.default_pooling()
        self._adapters: dict[str, str] = {}  # paths by name
        self._num_resets = 0  # of the prefix cache
        self._lock = threading.Lock()
        _open.add(self)

    def close(self) -> None:
        self.core.close()

    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self.core)

    def model_name(self) -> str:
        return self.args.model or os.path.basename(self.core.model_folder)

    def default_sampling_params(self) -> SamplingParams:
        return SamplingParams(**json.loads(self.core.default_sampling_params()))

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        arguments: dict[str, Any],
        chat_template: str | None,
    ) -> Prompt:
        """The prompt that the chat template makes of a conversation, as ids."""
        text = self.core.render_chat(
            to_json(list(messages)), to_json(arguments), whole_text(chat_template or "")
        )
        return Prompt(text, self.core.encode(text, False))

    def prepare(
        self,
        prompt: object,
        params: SamplingParams | PoolingParams,
        priority: int = 0,
        request_id: str = "",
        lora_request: LoRARequest | None = None,
        tokenization_kwargs: Mapping[str, Any] | None = None,
    ) -> Prepared:
        """Checks and tokenises, and reads an adapter that is new; raises what is wrong."""
        parsed = parse_prompt(prompt)
        most = truncation_of(tokenization_kwargs, None)
        if isinstance(params, PoolingParams):
            fields = self._pooling_fields(params)
            processors: list[Callable[..., None]] = []
        elif isinstance(params, SamplingParams):
            params.verify()
            fields = params._fields()
            for name in ("flex_mask", "flex_score"):
                if params.extra_args and params.extra_args.get(name):
                    fields[name] = params.extra_args[name]
            processors = [wrap_processor(p) for p in params.logits_processors or ()]
        else:
            raise TypeError(f"sampling_params must be SamplingParams, not {params!r}")
        if most is not None:
            fields["truncate_prompt_tokens"] = most
        fields["priority"] = priority
        fields["cache_salt"] = self._salt(parsed.cache_salt)
        fields["request_id"] = request_id
        if lora_request is not None:
            fields["adapter"] = self.adapter(lora_request)
        ids = parsed.token_ids
        if ids is None:
            ids = self.core.encode(parsed.text or "", True)
        return Prepared(fields, parsed.text, ids, params, processors)

    def reset_prefix_cache(self) -> None:
        """Requests from now on find nothing that was cached before."""
        with self._lock:
            self._num_resets += 1

    def sleep(self, level: int = 1, mode: str = "abort") -> None:
        """Gives back the device's memory, until wake_up."""
        if level not in (1, 2):
            raise ValueError(f"level is {level}; it must be 1 or 2")
        if mode not in ("abort", "wait"):
            raise ValueError(f"mode is {mode!r}; it must be 'abort' or 'wait'")
        self.core.sleep(level, mode == "abort")

    def wake_up(self, tags: list[str] | None = None) -> None:
        """Takes back the memory of `tags`, or all, and with all of it goes on."""
        self.core.wake_up(list(tags or []))

    def _salt(self, wish: str) -> str:
        return f"{self._num_resets}:{wish}" if self._num_resets else wish

    def adapter(self, wish: LoRARequest) -> str:
        """The name of an adapter that the engine has from now on."""
        with self._lock:
            known = self._adapters.get(wish.lora_name)
            if known != wish.lora_path or wish.load_inplace:
                self.core.load_adapter(
                    wish.lora_name, wish.lora_path, wish.base_model_name or "", known is not None
                )
                self._adapters[wish.lora_name] = wish.lora_path
        return wish.lora_name

    def _pooling_fields(self, params: PoolingParams) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "pooling": (params.pooling_type or self.pooling[0]).lower(),
            "normalize": self.pooling[1] if params.normalize is None else params.normalize,
        }
        if params.truncate_prompt_tokens is not None:
            fields["truncate_prompt_tokens"] = params.truncate_prompt_tokens
        return fields

    def submit(
        self,
        inbox: _core.OutputInbox,
        prepared: Prepared,
        kind: RequestOutputKind,
    ) -> RequestTracker:
        """Starts a request, whose updates come through `inbox` from now on."""
        params = prepared.params
        fields = prepared.fields
        tracker = RequestTracker(
            next(_keys),
            fields["request_id"],
            prepared.prompt,
            prepared.prompt_token_ids,
            params,
            kind,
        )
        tracker.request_id = self.core.submit(
            inbox,
            tracker.key,
            tracker.final_only,
            to_json(fields),
            prepared.prompt_token_ids,
            prepared.processors,
        )
        return tracker
