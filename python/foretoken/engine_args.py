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

from foretoken import _core
from foretoken._engine_fields import FORMS, GRAPH_FIELDS, EngineFields

_Args = TypeVar("_Args", bound="EngineArgs")
_POOLINGS = ("LAST", "MEAN", "CLS")


@dataclass
class EngineArgs(EngineFields):
    """Everything that shapes an engine: its own fields, and arguments that become such."""

    tokenizer: str | None = None
    compilation_config: Any = None
    async_scheduling: bool | None = None
    speculative_config: Any = None
    kv_transfer_config: Any = None
    pooler_config: Any = None
    override_pooler_config: Any = None
    task: str | None = None
    runner: str | None = None
    served_model_name: str | None = None
    disable_log_stats: bool = False
    others: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.others.items():
            _check_other(name, value, self.model)
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
        vllms = _core.vllm_names()
        others = dict(kwargs.pop("others", None) or {})
        for name in [name for name in kwargs if name not in known]:
            if name not in vllms:
                names = [*known, *vllms]
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

    def create_engine_config(self, *_: object, **__: object) -> None:
        raise NotImplementedError("there is no VllmConfig; give these arguments to an engine")

    def default_pooling(self) -> tuple[str, bool]:
        """Pooling type and whether states are normalised, for requests that do not say."""
        config = self.pooler_config or self.override_pooler_config or {}
        fields = dict(config) if isinstance(config, Mapping) else dict(vars(config))
        pooling = str(fields.get("pooling_type") or fields.get("seq_pooling_type") or "AUTO")
        if pooling.upper() not in (*_POOLINGS, "AUTO"):
            raise NotImplementedError(f"pooling_type {pooling!r} is not built; use {_POOLINGS}")
        normalize = fields.get("normalize", fields.get("use_activation"))
        return pooling.upper(), True if normalize is None else bool(normalize)

    def core_fields(self) -> dict[str, Any]:
        """The fields of the engine's own configuration, ready for JSON."""
        names = [item.name for item in dataclasses.fields(EngineFields)]
        fields = {name: _translated(name, getattr(self, name)) for name in names}
        if not self.device:
            fields["device"] = os.environ.get("FORETOKEN_DEVICE", "cpu")
        fields["speculative_config"] = _speculative(self.speculative_config)
        fields["kv_transfer_config"] = _transfer(self.kv_transfer_config)
        if self.async_scheduling is False and self.steps_in_flight == EngineFields.steps_in_flight:
            fields["steps_in_flight"] = 1
        fields.update(_graph_fields(self.compilation_config))
        return {name: value for name, value in fields.items() if value is not None}


@dataclass
class AsyncEngineArgs(EngineArgs):
    enable_log_requests: bool = False


def _check_other(name: str, value: object, model: str) -> None:
    """What becomes of a name of vLLM's that no field has."""
    if value is None or (isinstance(value, (str, list, tuple, dict)) and not value):
        return
    if isinstance(value, dict):
        text = json.dumps(value, default=str)
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")
    refused, reason = _core.judge_vllm_name(name, text, model)
    if refused:
        raise NotImplementedError(f"{name}={value!r}: {reason}")
    if reason:
        warnings.warn(f"{name}={value!r} has no effect: {reason}", UserWarning, stacklevel=5)


def _check_choice(name: str, value: str | None, known: tuple[str | None, ...]) -> None:
    if value not in known:
        names = ", ".join(str(k) for k in known if k)
        raise NotImplementedError(f"{name}={value!r} is not built; use one of {names}")


def _translated(name: str, value: Any) -> Any:
    """As the engine reads the field."""
    form = FORMS.get(name)
    if form == "dtype":
        return _dtype_name(value)
    if form == "length":
        return _model_len(value)
    if form == "json":
        return json.dumps(_mapping(name, value)) if value else None
    return value


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


def _transfer(config: object) -> dict[str, Any] | None:
    """A dict, JSON of one, or an object with such attributes, as vLLM's KVTransferConfig."""
    if not config:
        return None
    fields = json.loads(config) if isinstance(config, str) else config
    if not isinstance(fields, Mapping):
        fields = vars(fields)
    return {name: fields[name] for name in fields if not str(name).startswith("_")}


def _graph_fields(config: object) -> dict[str, Any]:
    """What compilation_config says about graphs; a level of vLLM's compiler says nothing here."""
    if config is None or isinstance(config, int):
        return {}
    fields = json.loads(config) if isinstance(config, str) else config
    if isinstance(fields, int):
        return {}
    fields = _mapping("compilation_config", fields)
    for name in fields:
        if name in GRAPH_FIELDS:
            continue
        if name not in _core.compiler_fields():
            raise ValueError(f"compilation_config: {name!r} is unknown; remove it")
        warnings.warn(
            f"compilation_config: {name!r} has no effect: {_core.NO_COMPILER}",
            UserWarning,
            stacklevel=4,
        )
    return {name: fields[name] for name in GRAPH_FIELDS if fields.get(name) is not None}


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
