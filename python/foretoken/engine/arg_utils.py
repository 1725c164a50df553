"""vLLM's path of these names."""

from foretoken.engine_args import AsyncEngineArgs, EngineArgs

__all__ = ["AsyncEngineArgs", "EngineArgs"]
