"""vLLM's path of these names."""

from foretoken.async_llm import AsyncLLMEngine

__all__ = ["AsyncLLMEngine"]
