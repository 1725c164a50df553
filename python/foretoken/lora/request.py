"""vLLM's path of these names."""

from foretoken.lora_request import LoRARequest

__all__ = ["LoRARequest"]
