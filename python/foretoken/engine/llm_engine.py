"""vLLM's path of these names."""

from foretoken.llm_engine import LLMEngine

__all__ = ["LLMEngine"]
