"""One engine for most tests; the bundled model, with and without speculation."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from foretoken import LLM

PROMPTS = [
    "Once upon a time",
    "The little dog",
    "12 + 7 =",
    "def add(a, b):",
    "Lily and Tom went to the park. Lily and Tom",
]
SMALL: dict[str, Any] = {"max_model_len": 512, "max_num_seqs": 8, "num_gpu_blocks_override": 512}
# Fixed lengths: the adaptive policy may find on a busy machine that drafts do not pay.
NGRAM: dict[str, Any] = {
    "method": "ngram",
    "num_speculative_tokens": 3,
    "prompt_lookup_max": 4,
    "prompt_lookup_min": 2,  # the last prompt ends as it begins: drafts, whatever is sampled
    "length_policy": "fixed",
}


class Hold:
    """A logits processor at which the engine stands still, `after` tokens of a text, until released."""

    def __init__(self, after: int = 0) -> None:
        self.after = after
        self.released = threading.Event()

    def __call__(self, output_ids: list[int], logits: object) -> None:
        if len(output_ids) >= self.after:
            self.released.wait(120)


@pytest.fixture(scope="session")
def llm() -> Iterator[LLM]:
    made = LLM(scheduling_policy="priority", disable_log_stats=False, **SMALL)
    yield made
    made.shutdown()


@pytest.fixture(scope="session")
def drafting_llm() -> Iterator[LLM]:
    eagle: dict[str, Any] = {"method": "eagle", "num_speculative_tokens": 3}
    made = LLM(speculative_config=[NGRAM, eagle], **SMALL)
    yield made
    made.shutdown()


@pytest.fixture
def run_python() -> Callable[[str], "subprocess.CompletedProcess[str]"]:
    """Runs a program in an interpreter of its own; it must end by itself."""

    def run(source: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", source],
            capture_output=True,
            text=True,
            timeout=600,
            env=dict(os.environ),
        )

    return run
