"""Logits processors are functions of the tokens so far; they work under speculation too."""

import numpy

from foretoken import LLM, SamplingParams

llm = LLM(speculative_config={"method": "ngram", "num_speculative_tokens": 3})
tokenizer = llm.get_tokenizer()
with_e = [token for token in range(len(tokenizer)) if "e" in tokenizer.decode(token)]


def without_e(output_ids: list[int], logits: numpy.ndarray) -> None:
    logits[with_e] = -numpy.inf


params = SamplingParams(temperature=0, max_tokens=30, logits_processors=[without_e])
print(llm.generate("Once upon a", params)[0].outputs[0].text)
