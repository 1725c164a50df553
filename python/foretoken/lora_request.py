"""Adapters (LoRA) that a request can have, as vLLM names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LoRARequest:
    """An adapter by its name, a number of the caller's, and its PEFT folder."""

    lora_name: str
    lora_int_id: int = 1
    lora_path: str = ""
    base_model_name: str | None = None
    load_inplace: bool = False

    def __post_init__(self) -> None:
        if not self.lora_name or not self.lora_path:
            raise ValueError("a LoRARequest needs lora_name and lora_path")
        if self.lora_int_id < 1:
            raise ValueError(f"lora_int_id must be at least 1, not {self.lora_int_id}")

    @property
    def name(self) -> str:
        return self.lora_name

    @property
    def path(self) -> str:
        return self.lora_path


LoRARequests = LoRARequest | Sequence[LoRARequest | None] | None


def check_lora(lora_request: Any) -> LoRARequest | None:
    if lora_request is None or isinstance(lora_request, LoRARequest):
        return lora_request
    raise TypeError(f"lora_request must be a LoRARequest, not {lora_request!r}")
