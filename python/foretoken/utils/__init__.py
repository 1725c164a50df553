"""vLLM's path of these names."""

from foretoken.utils.argparse_utils import FlexibleArgumentParser

__all__ = ["FlexibleArgumentParser"]
