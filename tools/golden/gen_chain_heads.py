"""Makes tests/golden/chain_heads/: tiny random heads that draft a chain from one state, and what they draft, by NumPy.

    python3 tools/golden/gen_chain_heads.py

The target is tests/golden/architectures/llama, run by Hugging Face transformers; the heads are written from the papers
(Medusa, arXiv 2401.10774; MLP speculators, arXiv 2404.19124) and the published configurations. Needs torch,
transformers, safetensors and numpy. tests/golden/chain_heads/README.md describes the output.
"""

import json
import math
import pathlib

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "tests" / "golden" / "architectures" / "llama"
OUT = ROOT / "tests" / "golden" / "chain_heads"
SEED, STEPS, FIRST = 20261127, 64, 3
HIDDEN, VOCAB, INNER, HEADS, REDUCED = 32, 256, 48, 4, 96

MEDUSA = {"architectures": ["MedusaModel"], "model_type": "medusa"}
FASTER_DECODING = {"medusa_num_heads": HEADS, "medusa_num_layers": 1, "base_model_name_or_path": "architectures/llama"}
MLP = {"architectures": ["MLPSpeculatorPreTrainedModel"], "model_type": "mlp_speculator", "vocab_size": VOCAB,
       "emb_dim": HIDDEN, "inner_dim": INNER, "n_predict": HEADS, "n_candidates": 5, "top_k_tokens_per_head": [5, 4, 3, 2],
       "torch_dtype": "float16"}
CONFIGS = {
    # As FasterDecoding publishes them: a block with a bias and an output matrix for each head, in medusa_lm_head.pt.
    "medusa": {**FASTER_DECODING, "transformers_version": "4.31.0"},
    # Two blocks, and the target's output matrix for all heads.
    "medusa-shared": {**FASTER_DECODING, "medusa_num_layers": 2},
    # As vLLM has them: no biases, and output matrices over the ids of token_map.
    "medusa-mapped": {**MEDUSA, "num_heads": HEADS, "num_hidden_layers": 1, "hidden_size": HIDDEN, "vocab_size": VOCAB,
                      "truncated_vocab_size": REDUCED, "max_paths": 64, "topk": 10},
    "mlp_speculator": {**MLP, "tie_weights": False, "scale_input": False},
    "mlp_speculator-tied": {**MLP, "tie_weights": True, "scale_input": True},
}


def run_target(ids):
    """The states behind the final norm, and the output matrix."""
    model = transformers.AutoModelForCausalLM.from_pretrained(TARGET, dtype=torch.float32).eval()
    with torch.no_grad():
        states = model.model(torch.tensor([ids])).last_hidden_state[0]
    return {"states": states.numpy().astype(np.float64), "head": model.lm_head.weight.detach().numpy().astype(np.float64)}


def medusa_shapes(name, config):
    mapped = name == "medusa-mapped"
    layers, shapes = config.get("medusa_num_layers", 1), {}
    for head in range(HEADS):
        for layer in range(layers):
            block = f"blocks.{head}.layers.{layer}" if mapped else f"{head}.{layer}.linear"
            shapes[block + ".weight"] = (HIDDEN, HIDDEN)
            if not mapped:
                shapes[block + ".bias"] = (HIDDEN,)
        if name == "medusa":
            shapes[f"{head}.{layers}.weight"] = (VOCAB, HIDDEN)
        elif mapped:
            shapes[f"lm_heads.{head}.weight"] = (REDUCED, HIDDEN)
    return shapes


def mlp_shapes(config):
    shapes = {}
    for step in range(1 if config["tie_weights"] else HEADS):
        shapes |= {f"speculator.emb.{step}.weight": (VOCAB, INNER), f"speculator.head.{step}.weight": (VOCAB, INNER),
                   f"speculator.ln.{step}.weight": (INNER,), f"speculator.ln.{step}.bias": (INNER,)}
    for step in range(2 if config["tie_weights"] else HEADS):
        shapes[f"speculator.proj.{step}.weight"] = (INNER, HIDDEN if step == 0 else INNER)
    return shapes


def random_weights(name, config, generator):
    """Numbers that are exact in bf16."""
    weights = {}
    for key, shape in (medusa_shapes(name, config) if name.startswith("medusa") else mlp_shapes(config)).items():
        noise = generator.standard_normal(shape)
        if key.endswith(".bias"):
            noise = 0.3 * noise
        elif len(shape) == 1:
            noise = 1 + 0.3 * noise
        elif ".emb." in key:
            noise = noise * math.sqrt(2 / INNER)
        else:
            noise = 1.6 * noise / math.sqrt(shape[1])
        weights[key] = torch.from_numpy(noise).to(torch.bfloat16)
    if name == "medusa-mapped":
        weights["token_map"] = torch.from_numpy(np.sort(generator.permutation(VOCAB)[:REDUCED]))
    return weights


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return x * (1 + np.array([math.erf(value / math.sqrt(2)) for value in x])) / 2


def rms(x):
    return x / np.sqrt(np.mean(x * x) + 1e-6)


def medusa_logits(config, weights, target, state):
    """The logits of every head, over target ids."""
    mapped = "token_map" in weights
    for head in range(HEADS):
        x = state
        for layer in range(config.get("medusa_num_layers", 1)):
            block = f"blocks.{head}.layers.{layer}" if mapped else f"{head}.{layer}.linear"
            x = x + silu(weights[block + ".weight"] @ x + weights.get(block + ".bias", 0))
        own = weights.get(f"lm_heads.{head}.weight" if mapped else f"{head}.{config.get('medusa_num_layers', 1)}.weight")
        logits = (target["head"] if own is None else own) @ x
        if mapped:
            spread = np.full(VOCAB, -np.inf)
            spread[weights["token_map"].astype(int)] = logits
            logits = spread
        yield logits


def mlp_steps(config, weights, state, token):
    """The logits of one step after the other; each takes the token before."""
    state_weight = 0.5 ** (0.5 / config["n_predict"])
    token_weight = math.sqrt((1 - state_weight ** 2) * INNER / 2)
    if config["scale_input"]:
        state = rms(state) / math.sqrt(2)
    for step in range(HEADS):
        own = 0 if config["tie_weights"] else step
        projection = min(step, 1) if config["tie_weights"] else step
        state = weights[f"speculator.proj.{projection}.weight"] @ state
        state = state + token_weight / state_weight * weights[f"speculator.emb.{own}.weight"][token]
        state = gelu(rms(state) * weights[f"speculator.ln.{own}.weight"] + weights[f"speculator.ln.{own}.bias"])
        token = yield weights[f"speculator.head.{own}.weight"] @ state


def drafts_behind(name, config, weights, target, ids):
    """What follows `ids`, of which the target has computed all but the last, and the smallest gap of a choice."""
    state, drafts, gaps = target["states"][len(ids) - 2], [], []

    def choose(logits):
        best = np.sort(logits)[-2:]
        gaps.append(float(best[1] - best[0]))
        drafts.append(int(np.argmax(logits)))
        return drafts[-1]

    if name.startswith("medusa"):
        for logits in medusa_logits(config, weights, target, state):
            choose(logits)
    else:
        steps = mlp_steps(config, weights, state, ids[-1])
        logits = next(steps)
        for _ in range(HEADS - 1):
            logits = steps.send(choose(logits))
        choose(logits)
    return drafts, min(gaps)


def generate(name, ids, target, generator):
    """A head whose drafts vary and stay far from ties; the first such draw of the generator."""
    config, lengths = CONFIGS[name], range(FIRST, FIRST + STEPS)
    while True:
        stored = random_weights(name, config, generator)
        weights = {key: value.double().numpy() for key, value in stored.items()}
        cases = [drafts_behind(name, config, weights, target, ids[:length]) for length in lengths]
        gap = min(gap for _, gap in cases)
        different = len({token for drafts, _ in cases for token in drafts})
        if gap > 2e-3 and different >= 40:
            break
    print(name, "smallest gap", gap, "different drafts", different)
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if name == "medusa":
        torch.save(stored, folder / "medusa_lm_head.pt")
    elif name.startswith("medusa"):
        save_file(stored, folder / "medusa_lm_head.safetensors", metadata={"format": "pt"})
    else:
        save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    return {"name": name, "drafts": [drafts for drafts, _ in cases], "gap": gap}


def main():
    torch.set_num_threads(1)
    generator = np.random.default_rng(SEED)
    ids = generator.integers(2, 250, FIRST + STEPS).tolist()
    target = run_target(ids)
    heads = [generate(name, ids, target, generator) for name in CONFIGS]
    (OUT / "golden.json").write_text(json.dumps(
        {"target": "architectures/llama", "numpy": np.__version__, "transformers": transformers.__version__, "seed": SEED,
         "ids": ids, "first": FIRST, "heads": heads}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
