"""vLLM's path of these names."""
