"""The same tokens with and without speculation, and what was accepted."""

from foretoken import LLM, SamplingParams

prompts = ["Once upon a time", "The little dog", "Lily and Tom went to the park."]
params = SamplingParams(temperature=0, max_tokens=60)

plain = LLM()
# As many drafts as the bound says; without "length_policy" as many as pay on this machine.
drafter = {"method": "eagle3", "num_speculative_tokens": 3, "length_policy": "fixed"}
drafting = LLM(speculative_config=drafter)
for one, other in zip(plain.generate(prompts, params), drafting.generate(prompts, params)):
    assert one.outputs[0].token_ids == other.outputs[0].token_ids
    counts = other.metrics
    assert counts is not None
    print(
        f"{other.prompt!r}: {counts.num_generation_tokens} tokens in {counts.num_steps} steps, "
        f"{counts.num_accepted_tokens} of {counts.num_draft_tokens} drafts accepted"
    )
for metric in drafting.get_metrics():
    if "spec_decode" in metric.name:
        print(metric)
