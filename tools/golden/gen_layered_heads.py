"""Makes tests/golden/layered_heads/: tiny random EAGLE heads of several layers and P-EAGLE heads, and what they draft.

    python3 tools/golden/gen_layered_heads.py

The target is tests/golden/architectures/llama, run by Hugging Face transformers; the heads are plain PyTorch. Needs
torch, transformers and safetensors. tests/golden/layered_heads/README.md describes the output.
"""

import copy
import json

import torch
import transformers
from safetensors.torch import save_file

from gen_heads import DRAFT_VOCAB, PLAIN, ROOT, TAPS, layer, layer_shapes, rms_norm, run_target, speculators_config

OUT = ROOT / "tests" / "golden" / "layered_heads"
SEED, STEPS, FIRST, MASK = 20261128, 64, 3, 255
MIN_GAP = 2e-3

EAGLE3 = {**PLAIN, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": DRAFT_VOCAB,
          "eagle_config": {"eagle_aux_hidden_state_layer_ids": TAPS}}
PEAGLE = {**EAGLE3, "architectures": ["PEagleDraftModel"]}
SPECULATORS = speculators_config()
CONFIGS = {
    # As many layers as the target has: what the tensors tell decides.
    "eagle-3-layers": {**PLAIN, "architectures": ["EagleLlamaForCausalLM"], "num_hidden_layers": 3},
    "eagle3-2-layers": {**EAGLE3, "num_hidden_layers": 2},
    # As SpecForge publishes it, with peagle_config.json; as NeMo does for vLLM; as speculators does.
    "p_eagle": {**PEAGLE, "num_hidden_layers": 3},
    "p_eagle-vllm": {**EAGLE3, "parallel_drafting": True, "ptd_token_id": MASK, "fc_norm": True},
    "p_eagle-speculators": {**SPECULATORS, "architectures": ["PEagleDraftModel"], "speculators_model_type": "peagle",
                            "mask_token_id": MASK, "norm_before_residual": False,
                            "transformer_layer_config": {**SPECULATORS["transformer_layer_config"],
                                                         "num_hidden_layers": 2}},
}
BESIDE = {"p_eagle": {"num_depths": 8, "mask_token_id": MASK, "num_draft_layers": 3, "norm_before_residual": True}}


def sizes(config):
    return config.get("transformer_layer_config", config)


def drafts_of(name):
    return 6 if name.startswith("p_eagle") else 4


def shapes(name, config):
    hidden = sizes(config)["hidden_size"]
    if name.startswith("eagle-"):
        all_shapes = {"fc.weight": (hidden, 2 * hidden), "fc.bias": (hidden,),
                      **layer_shapes("layers.0.", config, hidden)}
    else:
        first = "midlayer." if name == "eagle3-2-layers" else "layers.0."
        all_shapes = {"fc.weight": (hidden, 3 * hidden), f"{first}input_layernorm.weight": (hidden,),
                      f"{first}hidden_norm.weight": (hidden,), **layer_shapes(first, config, 2 * hidden),
                      "norm.weight": (hidden,), "lm_head.weight": (DRAFT_VOCAB, hidden)}
        if config.get("fc_norm"):
            all_shapes |= {f"fc_norm.{i}.weight": (hidden,) for i in range(3)}
    for depth in range(1, sizes(config)["num_hidden_layers"]):
        prefix = f"layers.{depth}."
        all_shapes |= {f"{prefix}input_layernorm.weight": (hidden,), **layer_shapes(prefix, config, hidden)}
    return all_shapes


def random_weights(name, config, generator):
    weights = {}
    for key, shape in shapes(name, config).items():
        values = torch.randn(shape, generator=generator)
        if key.endswith(".bias"):
            values *= 0.3
        elif len(shape) == 1:
            values = torch.rand(shape, generator=generator) + 0.5
        else:
            values *= (4.0 if "lm_head" in key else 1.4) * shape[1] ** -0.5
        weights[key] = values.to(torch.bfloat16)
    if name.startswith("eagle-"):
        return weights
    vocab = sizes(config)["vocab_size"]
    kept = torch.randperm(vocab, generator=generator)[:DRAFT_VOCAB].sort().values
    weights["d2t"] = kept - torch.arange(DRAFT_VOCAB)
    weights["t2d"] = torch.zeros(vocab, dtype=torch.bool)
    weights["t2d"][kept] = True
    if name.startswith("p_eagle"):
        masked = torch.randn((1, 3 * sizes(config)["hidden_size"]), generator=generator).to(torch.bfloat16)
        weights["mask_hidden"] = masked if name == "p_eagle-vllm" else masked[None]
    return weights


class LayeredHead:
    """One head over one text; every layer has keys and values of its own. Positions are rotary ones."""

    def __init__(self, name, config, weights, target):
        self.name, self.config, self.weights, self.target = name, config, weights, target
        self.residual_is_normed = {**config, **BESIDE.get(name, {})}.get("norm_before_residual", False)
        self.caches = [[] for _ in range(sizes(config)["num_hidden_layers"])]

    def project(self, taps):
        """What a state of three taps [3 * hidden] becomes for an entry."""
        if self.config.get("fc_norm"):
            taps = torch.cat([rms_norm(tap, self.weights[f"fc_norm.{i}.weight"], self.config)
                              for i, tap in enumerate(taps.chunk(3))])
        return self.weights["fc.weight"] @ taps

    def state_of(self, index):
        if self.name.startswith("eagle-"):
            return self.target["final"][index]
        return self.project(torch.cat([self.target[f"tap{tap}"][index] for tap in TAPS]))

    def enter(self, token, state):
        """What the first layer's attention reads, and its residual."""
        w, embedding = self.weights, self.target["embedding"][token]
        if self.name.startswith("eagle-"):
            x = w["fc.weight"] @ torch.cat((embedding, state)) + w["fc.bias"]
            return x, x
        prefix = "midlayer." if "midlayer.hidden_norm.weight" in w else "layers.0."
        normed = rms_norm(state, w[prefix + "hidden_norm.weight"], self.config)
        embedding = rms_norm(embedding, w[prefix + "input_layernorm.weight"], self.config)
        return torch.cat((embedding, normed)), normed if self.residual_is_normed else state

    def entry(self, token, state, position):
        """The entry's own state, and logits."""
        w, (x, residual) = self.weights, self.enter(token, state)
        first = "midlayer." if "midlayer.hidden_norm.weight" in w else "layers.0."
        out = layer(x, residual, position, w, first, self.config, self.caches[0])
        for depth, cache in enumerate(self.caches[1:], start=1):
            normed = rms_norm(out, w[f"layers.{depth}.input_layernorm.weight"], self.config)
            out = layer(normed, out, position, w, f"layers.{depth}.", self.config, cache)
        if self.name.startswith("eagle-"):
            return out, self.target["head"] @ out
        return out, w["lm_head.weight"] @ rms_norm(out, w["norm.weight"], self.config)

    def choose(self, logits):
        best = logits.topk(2)
        choice = best.indices[0].item()
        offset = 0 if self.name.startswith("eagle-") else self.weights["d2t"][choice].item()
        return choice + int(offset), (best.values[0] - best.values[1]).item()

    def drafts(self, ids, last, count):
        """Behind `ids`, whose entries but the last are in the caches: `last` is the last entry's (state, logits)."""
        (state, logits), chosen, gaps = last, [], []
        for number in range(count):
            token, gap = self.choose(logits)
            chosen.append(token)
            gaps.append(gap)
            if number + 1 == count:
                break
            masks = self.name.startswith("p_eagle")
            token = MASK if masks else token
            state = self.project(self.weights["mask_hidden"].flatten()) if masks else state
            state, logits = self.entry(token, state, len(ids) - 1 + number)
        return chosen, min(gaps)


def run_head(name, config, weights, ids, target):
    """Drafts behind each of the prefixes, and the smallest gap."""
    head, cases = LayeredHead(name, config, weights, target), []
    for index in range(1, FIRST + STEPS - 1):
        last = head.entry(ids[index], head.state_of(index - 1), index - 1)
        if index + 1 < FIRST:
            continue
        kept = copy.deepcopy(head.caches)
        cases.append(head.drafts(ids[:index + 1], last, drafts_of(name)))
        head.caches = kept
    return cases


def generate(name, ids, target, generator):
    """A head whose drafts vary and stay far from ties; the first such draw of the generator."""
    config = CONFIGS[name]
    while True:
        stored = random_weights(name, config, generator)
        weights = {key: value.float() if value.is_floating_point() else value for key, value in stored.items()}
        cases = run_head(name, config, weights, ids, target)
        gap = min(gap for _, gap in cases)
        different = len({token for drafts, _ in cases for token in drafts})
        later = len({tuple(drafts[1:]) for drafts, _ in cases})
        if gap > MIN_GAP and different >= 30 and later >= 30:
            break
    print(name, "smallest gap", gap, "different drafts", different, "different later drafts", later)
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if name in BESIDE:
        (folder / "peagle_config.json").write_text(json.dumps(BESIDE[name], indent=1) + "\n")
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    return {"name": name, "drafts": [drafts for drafts, _ in cases], "gap": gap}


def main():
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    ids = torch.randint(2, 250, (FIRST + STEPS - 1,), generator=generator).tolist()
    target = run_target(ids)
    heads = [generate(name, ids, target, generator) for name in CONFIGS]
    (OUT / "golden.json").write_text(json.dumps(
        {"target": "architectures/llama", "torch": torch.__version__, "transformers": transformers.__version__,
         "seed": SEED, "ids": ids, "first": FIRST, "heads": heads}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
