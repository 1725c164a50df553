"""vLLM's path of these names."""

from foretoken.async_llm import AsyncLLM

__all__ = ["AsyncLLM"]
