"""vLLM's path of these names."""

from foretoken.llm import LLM

__all__ = ["LLM"]
