"""Modules, names and attributes of vLLM that have no counterpart here, each with a sentence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

_NO_WORKERS = "there are no workers in Python; ranks are made by tensor_parallel_size and its like"
_NO_PARTS = "models, kernels and graphs are C++; foretoken inspect lists them"
_NO_IMAGES = "prompts are text"
_ONE_CONFIG = "the configuration is one flat list of fields; see EngineArgs and model_config"
_INSIDE = "prompts and outputs are prepared inside of the engine; use add_request and step"
_NO_SLEEP = "call sleep, wake_up and is_sleeping of LLM or AsyncLLM"
_NO_UPDATES = "weights are read once; call shutdown and make another engine"
_NO_PROFILE = "profiles are written by the command line, with --profile FILE"

# Modules behind "foretoken.".
MODULES = {
    "assets": _NO_IMAGES,
    "attention": _NO_PARTS,
    "compilation": _NO_PARTS,
    "config": _ONE_CONFIG,
    "distributed": _NO_WORKERS,
    "executor": _NO_WORKERS,
    "forward_context": _NO_PARTS,
    "model_executor": _NO_PARTS,
    "multimodal": _NO_IMAGES,
    "platforms": "devices are named by device='cpu' or 'cuda'",
    "plugins": "plugins are not built",
    "transformers_utils": "tokenizers are read by the engine; see LLM.get_tokenizer",
    "worker": _NO_WORKERS,
}

# Names of the package itself.
NAMES = {
    "ClassificationOutput": "classification heads are not built",
    "ClassificationRequestOutput": "classification heads are not built",
    "ModelRegistry": "models are built in; foretoken inspect --families lists them",
    "VllmConfig": _ONE_CONFIG,
    "initialize_ray_cluster": "ranks are threads of this process, without Ray; leave it out",
}

# Attributes of engines.
ATTRIBUTES = {
    "vllm_config": _ONE_CONFIG,
    "cache_config": _ONE_CONFIG,
    "device_config": _ONE_CONFIG,
    "lora_config": _ONE_CONFIG,
    "parallel_config": _ONE_CONFIG,
    "scheduler_config": _ONE_CONFIG,
    "speculative_config": _ONE_CONFIG,
    "engine_core": _NO_WORKERS,
    "model_executor": _NO_WORKERS,
    "collective_rpc": _NO_WORKERS,
    "apply_model": _NO_WORKERS,
    "input_processor": _INSIDE,
    "output_processor": _INSIDE,
    "processor": _INSIDE,
    "renderer": _INSIDE,
    "sleep": _NO_SLEEP,
    "wake_up": _NO_SLEEP,
    "is_sleeping": _NO_SLEEP,
    "start_profile": _NO_PROFILE,
    "stop_profile": _NO_PROFILE,
    "get_world_size": _NO_WORKERS,
    "set_tokenizer": "the tokenizer is always the model's own",
    "update_weights": _NO_UPDATES,
    "init_weight_transfer_engine": _NO_UPDATES,
    "preprocess_chat": _INSIDE,
    "preprocess_cmpl": _INSIDE,
    "enqueue": "use llm_engine.add_request and step",
}


def name_of_package(name: str) -> object:
    """For __getattr__ of the package. `from foretoken import NAME` shows no other error's words."""
    if name in NAMES:
        raise ImportError(f"foretoken has no {name}: {NAMES[name]}")
    raise AttributeError(f"module 'foretoken' has no attribute {name!r}")


class OtherAttributes:
    """Base of engines: attributes of vLLM's that are not here are answered with a sentence."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            own = type(self).__name__
            if name in ATTRIBUTES:
                raise AttributeError(f"{own} has no {name}: {ATTRIBUTES[name]}")
            raise AttributeError(f"{own!r} object has no attribute {name!r}")


class _Finder(MetaPathFinder):
    """Asked for modules that nobody else has found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        part = rest.partition(".")[0]
        if package == "foretoken" and part in MODULES:
            raise ModuleNotFoundError(f"there is no {fullname}: {MODULES[part]}", name=fullname)
        return None


def install() -> None:
    """Once for the interpreter, also when the package is imported again."""
    if not any(type(finder).__name__ == _Finder.__name__ for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
