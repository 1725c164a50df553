"""LLM.sleep and wake_up: memory that is given back meanwhile."""

from __future__ import annotations

import pytest
from conftest import PROMPTS, SMALL

from foretoken import LLM, SamplingParams


def test_texts_are_the_same_behind_each_level() -> None:
    llm = LLM(enable_sleep_mode=True, **SMALL)
    wish = SamplingParams(temperature=0, max_tokens=12)

    def texts() -> list[str]:
        return [output.outputs[0].text for output in llm.generate(PROMPTS, wish, use_tqdm=False)]

    before = texts()
    for level in (1, 2):
        llm.sleep(level=level)
        assert llm.is_sleeping()
        llm.wake_up(tags=["weights"])
        assert llm.is_sleeping()
        llm.wake_up(tags=["kv_cache"])
        assert not llm.is_sleeping()
        assert texts() == before
    with pytest.raises(ValueError, match="level"):
        llm.sleep(level=3)
    with pytest.raises(ValueError, match="drafts"):
        llm.sleep()
        llm.wake_up(tags=["drafts"])
    llm.shutdown()


def test_it_wants_its_field(llm: LLM) -> None:
    with pytest.raises(NotImplementedError, match="enable.sleep.mode"):
        llm.sleep()
