"""Arguments of engines under vLLM's names: acted on, without effect, or an error."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from foretoken._other_args import NOT_BUILT, WITHOUT_EFFECT

_Args = TypeVar("_Args", bound="EngineArgs")
_POOLINGS = ("LAST", "MEAN", "CLS")


@dataclass
class EngineArgs:
    """Everything that shapes an engine; None takes the engine's own default."""

    model: str = ""  # folder or Hub id; empty: the bundled model
    tokenizer: str | None = None
    revision: str | None = None
    download_dir: str | None = None
    device: str | None = None  # cpu or cuda; None: $FORETOKEN_DEVICE, or cpu
    dtype: Any = "auto"
    quantization: str | None = None  # fp8 rounds at load; or the method of the model's files
    kv_cache_dtype: str = "auto"  # auto: the checkpoint's or the model's; fp8; int8 on the CPU
    load_format: str = "auto"
    hf_overrides: Mapping[str, Any] | None = None
    generation_config: str = "auto"
    override_generation_config: Mapping[str, Any] | None = None
    chat_template: str | None = None
    skip_tokenizer_init: bool = False
    attention_backend: str | None = None
    batch_invariant: str = "auto"
    cpu_threads: int | None = None
    seed: int | None = None
    max_model_len: int | str | None = None
    max_num_seqs: int | None = None
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    enable_expert_parallel: bool = False
    disable_custom_all_reduce: bool = False
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    num_gpu_blocks_override: int | None = None
    kv_cache_memory_bytes: int | None = None
    gpu_memory_utilization: float = 0.9
    enable_prefix_caching: bool | None = None
    enforce_eager: bool = False
    compilation_config: Any = None
    cudagraph_capture_sizes: list[int] | None = None
    max_cudagraph_capture_size: int | None = None
    async_scheduling: bool | None = None
    steps_in_flight: int | None = None
    step_timeout_seconds: int | None = None
    scheduling_policy: str = "fcfs"
    max_logprobs: int | None = None
    max_processor_rows: int | None = None
    speculative_config: Any = None
    enable_lora: bool = False
    max_loras: int | None = None
    max_lora_rank: int | None = None
    max_cpu_loras: int | None = None
    lora_dtype: Any = "auto"
    step_time_table: str | None = None
    profile: str | None = None
    pooler_config: Any = None
    override_pooler_config: Any = None
    task: str | None = None
    runner: str | None = None
    served_model_name: str | None = None
    disable_log_stats: bool = False
    others: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.others.items():
            _check_other(name, value)
        _check_choice("task", self.task, (None, "auto", "generate", "embed", "embedding"))
        _check_choice("runner", self.runner, (None, "auto", "generate", "pooling"))
        if self.tokenizer not in (None, "", self.model):
            raise NotImplementedError(
                f"tokenizer {self.tokenizer!r}: the tokenizer is always the model's own; leave "
                "tokenizer out, or put its tokenizer.json into the model's folder"
            )
        self.default_pooling()

    @classmethod
    def from_kwargs(cls: type[_Args], **kwargs: Any) -> _Args:
        """From the keyword arguments of vLLM's LLM; unknown ones are a TypeError."""
        known = {f.name for f in dataclasses.fields(cls)}
        others = dict(kwargs.pop("others", None) or {})
        for name in [name for name in kwargs if name not in known]:
            if name not in NOT_BUILT and name not in WITHOUT_EFFECT:
                names = [*known, *NOT_BUILT, *WITHOUT_EFFECT]
                near = difflib.get_close_matches(name, names, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise TypeError(f"{name!r} is no engine argument{hint}")
            others[name] = kwargs.pop(name)
        return cls(**kwargs, others=others)

    @classmethod
    def add_cli_args(cls, parser: Any) -> Any:
        """Adds a flag for each argument to an argparse parser or group; returns it."""
        for item in dataclasses.fields(cls):
            if item.name == "others":
                continue
            flag = "--" + item.name.replace("_", "-")
            default = None if item.default is dataclasses.MISSING else item.default
            options: dict[str, Any] = {"dest": item.name, "default": default}
            if "bool" in str(item.type):
                options["action"] = argparse.BooleanOptionalAction
            else:
                options["type"] = _reader_of(str(item.type))
            parser.add_argument(flag, **options)
        return parser

    @classmethod
    def from_cli_args(cls: type[_Args], args: argparse.Namespace) -> _Args:
        names = {f.name for f in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in vars(args).items() if name in names})

    def default_pooling(self) -> tuple[str, bool]:
        """Pooling type and whether states are normalised, for requests that do not say."""
        config = self.pooler_config or self.override_pooler_config or {}
        fields = dict(config) if isinstance(config, Mapping) else dict(vars(config))
        pooling = str(fields.get("pooling_type") or fields.get("seq_pooling_type") or "LAST")
        if pooling.upper() not in _POOLINGS:
            raise NotImplementedError(f"pooling_type {pooling!r} is not built; use {_POOLINGS}")
        normalize = fields.get("normalize", fields.get("use_activation"))
        return pooling.upper(), True if normalize is None else bool(normalize)

    def core_fields(self) -> dict[str, Any]:
        """The fields of the engine's own configuration, ready for JSON."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in _SENT}
        fields["device"] = self.device or os.environ.get("FORETOKEN_DEVICE", "cpu")
        fields["dtype"] = _dtype_name(self.dtype)
        fields["lora_dtype"] = _dtype_name(self.lora_dtype)
        fields["max_model_len"] = _model_len(self.max_model_len)
        for name in ("hf_overrides", "override_generation_config"):
            value = getattr(self, name)
            fields[name] = json.dumps(_mapping(name, value)) if value else None
        fields["speculative_config"] = _speculative(self.speculative_config)
        if self.async_scheduling is False and self.steps_in_flight is None:
            fields["steps_in_flight"] = 1
        fields.update(_graph_fields(self.compilation_config))
        return {name: value for name, value in fields.items() if value is not None}


@dataclass
class AsyncEngineArgs(EngineArgs):
    enable_log_requests: bool = False


_SENT = (
    "model",
    "revision",
    "download_dir",
    "quantization",
    "kv_cache_dtype",
    "load_format",
    "generation_config",
    "chat_template",
    "skip_tokenizer_init",
    "attention_backend",
    "batch_invariant",
    "cpu_threads",
    "seed",
    "max_num_seqs",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "enable_expert_parallel",
    "disable_custom_all_reduce",
    "max_num_batched_tokens",
    "block_size",
    "num_gpu_blocks_override",
    "kv_cache_memory_bytes",
    "gpu_memory_utilization",
    "enable_prefix_caching",
    "enforce_eager",
    "cudagraph_capture_sizes",
    "max_cudagraph_capture_size",
    "steps_in_flight",
    "step_timeout_seconds",
    "scheduling_policy",
    "max_logprobs",
    "max_processor_rows",
    "enable_lora",
    "max_loras",
    "max_lora_rank",
    "max_cpu_loras",
    "step_time_table",
    "disable_log_stats",
    "profile",
)


def _check_other(name: str, value: object) -> None:
    if name in NOT_BUILT:
        harmless, reason = NOT_BUILT[name]
        if value not in harmless:
            raise NotImplementedError(f"{name}={value!r}: {reason}")
        return
    harmless, reason = WITHOUT_EFFECT[name]
    if value not in harmless:
        warnings.warn(f"{name}={value!r} has no effect: {reason}", UserWarning, stacklevel=5)


def _check_choice(name: str, value: str | None, known: tuple[str | None, ...]) -> None:
    if value not in known:
        names = ", ".join(str(k) for k in known if k)
        raise NotImplementedError(f"{name}={value!r} is not built; use one of {names}")


def _mapping(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise NotImplementedError(f"{name} must be a dict, not {value!r}")
    return dict(value)


def _dtype_name(dtype: object) -> str:
    """Also torch's: torch.bfloat16 prints as such."""
    name = str(dtype).removeprefix("torch.")
    return {"float": "float32", "half": "float16"}.get(name, name)


def _model_len(given: int | str | None) -> int | None:
    if given is None or isinstance(given, int):
        return given
    if given == "auto":
        return -1
    scales = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
    digits, scale = (given[:-1], scales[given[-1]]) if given[-1:] in scales else (given, 1)
    try:
        return int(float(digits) * scale)
    except ValueError:
        raise ValueError(
            f"max_model_len {given!r} must be a number such as 4096, 32k or 1M, or 'auto'"
        ) from None


def _speculative(config: object) -> Any:
    """A dict, a list of dicts, or JSON of either."""
    if config is None or isinstance(config, (Mapping, list)):
        return config or None
    if isinstance(config, str):
        return json.loads(config)
    raise ValueError(f"speculative_config must be a dict or a list of dicts, not {config!r}")


def _graph_fields(config: object) -> dict[str, Any]:
    """What compilation_config says about graphs; a level of vLLM's compiler says nothing here."""
    if config is None or isinstance(config, int):
        return {}
    fields = json.loads(config) if isinstance(config, str) else config
    if isinstance(fields, int):
        return {}
    fields = _mapping("compilation_config", fields)
    known = ("cudagraph_mode", "cudagraph_capture_sizes", "max_cudagraph_capture_size")
    for name in fields:
        if name not in known:
            warnings.warn(
                f"compilation_config: {name!r} has no effect: there is no compiler here",
                UserWarning,
                stacklevel=4,
            )
    return {name: fields[name] for name in known if fields.get(name) is not None}


def _reader_of(kind: str) -> Callable[[str], Any]:
    if kind.startswith("int | str"):
        return lambda text: int(text) if text.lstrip("-").isdigit() else text
    if kind.startswith("int"):
        return int
    if kind.startswith("float"):
        return float
    if kind.startswith("Mapping") or kind.startswith("list"):
        return _json
    return str


def _json(text: str) -> Any:
    return json.loads(text)
