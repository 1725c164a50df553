"""Text of several prompts, with the bundled model: python examples/python/generate.py"""

from foretoken import LLM, SamplingParams

prompts = ["Once upon a time", "The little dog", "12 + 7 ="]
params = SamplingParams(temperature=0.8, top_p=0.95, max_tokens=40, seed=1)

for output in LLM().generate(prompts, params):
    print(f"{output.prompt!r} -> {output.outputs[0].text!r}")
