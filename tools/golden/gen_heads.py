"""Makes tests/golden/heads/: tiny random speculation heads and what they answer, by plain PyTorch.

    python3 tools/golden/gen_heads.py
    python3 tools/golden/gen_heads.py --only mimo   # the others stay as they are

The target is tests/golden/architectures/llama, run by Hugging Face transformers. Needs torch, transformers and
safetensors. tests/golden/heads/README.md describes the output.
"""

import argparse
import json
import pathlib

import torch
import transformers
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "tests" / "golden" / "architectures" / "llama"
OUT = ROOT / "tests" / "golden" / "heads"
SEED, TOKENS, DRAFTS, PREFIXES = 20261121, 18, 3, (2, 3, 5, 9, 14, 18)
TAPS = [0, 1, 2]
DRAFT_VOCAB = 96
MIN_GAP = 0.02  # of a draft's logit over the next one

SMALL = {"hidden_size": 32, "intermediate_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
         "vocab_size": 256, "max_position_embeddings": 512, "rope_theta": 5000.0, "rms_norm_eps": 1e-5,
         "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "rope_scaling": None,
         "tie_word_embeddings": False}
PLAIN = {**SMALL, "model_type": "llama", "num_hidden_layers": 1, "torch_dtype": "bfloat16"}


def speculators_config():
    """The nested config of the speculators library's checkpoints."""
    return {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "speculators_version": "0.3.0",
            "draft_vocab_size": DRAFT_VOCAB, "norm_before_residual": True, "target_hidden_size": None,
            "eagle_aux_hidden_state_layer_ids": TAPS, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "speculators_config": {
                "algorithm": "eagle3", "default_proposal_method": "greedy",
                "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": DRAFTS,
                                      "verifier_accept_k": 1, "accept_tolerance": 0.0}],
                "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "architectures/llama"}},
            "transformer_layer_config": {"model_type": "llama", "num_hidden_layers": 1, **SMALL}}


def mtp_config(modules):
    target = json.loads((TARGET / "config.json").read_text())
    return {**target, "architectures": ["LlamaForCausalLMMTP"], "num_nextn_predict_layers": modules}


CONFIGS = {
    "eagle3": {**PLAIN, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": DRAFT_VOCAB,
               "eagle_config": {"eagle_aux_hidden_state_layer_ids": TAPS}},
    "eagle3-speculators": speculators_config(),
    "eagle": {**PLAIN, "architectures": ["EagleLlamaForCausalLM"], "rope_theta": 10000.0},
    "mtp": mtp_config(1),
    "mtp-2": mtp_config(2),
    "mimo": {**mtp_config(1), "architectures": ["MiMoForCausalLM"], "model_type": "mimo", "attention_bias": True},
    # EAGLE-3.1: the taps are normed before fc, each or all as one row, and what a draft hands on is normed too. The
    # first repeats the target's number of layers, and its weights are a .bin, as with some published ones.
    "eagle3-1": {**PLAIN, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": DRAFT_VOCAB,
                 "num_hidden_layers": 3, "fc_norm": True, "norm_output": True,
                 "eagle_config": {"eagle_aux_hidden_state_layer_ids": TAPS}},
    "eagle3-1-speculators": {**speculators_config(), "norm_before_fc": True, "norm_output": True},
}


def sizes(config):
    return config.get("transformer_layer_config", config)


# Weights.

def layer_shapes(prefix, config, attention_input):
    size = sizes(config)
    hidden, inner, head = size["hidden_size"], size["intermediate_size"], size["head_dim"]
    queries, keys = size["num_attention_heads"] * head, size["num_key_value_heads"] * head
    return {f"{prefix}self_attn.q_proj.weight": (queries, attention_input),
            f"{prefix}self_attn.k_proj.weight": (keys, attention_input),
            f"{prefix}self_attn.v_proj.weight": (keys, attention_input),
            f"{prefix}self_attn.o_proj.weight": (hidden, queries),
            f"{prefix}post_attention_layernorm.weight": (hidden,),
            f"{prefix}mlp.gate_proj.weight": (inner, hidden), f"{prefix}mlp.up_proj.weight": (inner, hidden),
            f"{prefix}mlp.down_proj.weight": (hidden, inner)}


def shapes_of(name, config):
    hidden = sizes(config)["hidden_size"]
    if name.startswith("eagle3"):
        prefix = "layers.0." if "speculators" in name else "midlayer."
        norms = {f"fc_norm.{i}.weight": (hidden,) for i in range(3)} if config.get("fc_norm") else {}
        if config.get("norm_before_fc"):
            norms = {"input_norm.weight": (3 * hidden,)}
        return {"fc.weight": (hidden, 3 * hidden), **norms, f"{prefix}input_layernorm.weight": (hidden,),
                f"{prefix}hidden_norm.weight": (hidden,), **layer_shapes(prefix, config, 2 * hidden),
                "norm.weight": (hidden,), "lm_head.weight": (DRAFT_VOCAB, hidden)}
    if name == "eagle":
        return {"fc.weight": (hidden, 2 * hidden), "fc.bias": (hidden,), **layer_shapes("layers.0.", config, hidden)}
    if name == "mimo":
        prefix, head = "model.mtp_layers.0.", config["head_dim"]
        biases = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"],
                  "v": config["num_key_value_heads"]}
        norms = ("token_layernorm", "hidden_layernorm", "input_layernorm", "final_layernorm")
        return {**{f"{prefix}{norm}.weight": (hidden,) for norm in norms},
                f"{prefix}input_proj.weight": (hidden, 2 * hidden), **layer_shapes(prefix, config, hidden),
                **{f"{prefix}self_attn.{part}_proj.bias": (heads * head,) for part, heads in biases.items()}}
    shapes = {}
    for module in range(config["num_nextn_predict_layers"]):
        prefix = f"model.layers.{config['num_hidden_layers'] + module}."
        shapes |= {f"{prefix}enorm.weight": (hidden,), f"{prefix}hnorm.weight": (hidden,),
                   f"{prefix}eh_proj.weight": (hidden, 2 * hidden), f"{prefix}input_layernorm.weight": (hidden,),
                   **layer_shapes(prefix, config, hidden), f"{prefix}shared_head.norm.weight": (hidden,)}
    return shapes


def random_weights(name, config, generator):
    """Exact in bf16; wide enough that logits vary by several units."""
    weights = {}
    for key, shape in shapes_of(name, config).items():
        values = torch.randn(shape, generator=generator)
        if key.endswith(".bias"):
            values *= 0.3
        elif len(shape) == 1:
            values = torch.rand(shape, generator=generator) + 0.5
        else:
            values *= (4.0 if "lm_head" in key else 1.0) * shape[1] ** -0.5
        weights[key] = values.to(torch.bfloat16)
    if name.startswith("eagle3"):
        kept = torch.randperm(sizes(config)["vocab_size"], generator=generator)[:DRAFT_VOCAB].sort().values
        weights["d2t"] = kept - torch.arange(DRAFT_VOCAB)
        weights["t2d"] = torch.zeros(sizes(config)["vocab_size"], dtype=torch.bool)
        weights["t2d"][kept] = True
    return weights


# Arithmetic: fp32, one entry at a time, with a list of keys and values per module.

def rms_norm(x, weight, config):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + sizes(config)["rms_norm_eps"]) * weight


def rotate(x, position, config):
    """x [heads, head_dim], the two halves of a head paired."""
    size = sizes(config)["head_dim"]
    angle = position * sizes(config)["rope_theta"] ** -(torch.arange(0, size, 2).float() / size)
    low, high = x.chunk(2, -1)
    return torch.cat((low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()), -1)


def attend(x, position, weights, prefix, config, cache):
    """x [input]; appends its key and value to `cache` and attends to all that lie there."""
    head = sizes(config)["head_dim"]
    query, key, value = ((weights[f"{prefix}self_attn.{part}_proj.weight"] @ x
                          + weights.get(f"{prefix}self_attn.{part}_proj.bias", 0)).view(-1, head) for part in "qkv")
    cache.append((rotate(key, position, config), value))
    keys, values = (torch.stack(rows, 1) for rows in zip(*cache))
    repeat = query.shape[0] // keys.shape[0]
    keys, values = keys.repeat_interleave(repeat, 0), values.repeat_interleave(repeat, 0)
    scores = torch.einsum("hd,hsd->hs", rotate(query, position, config), keys) * head ** -0.5
    mixed = torch.einsum("hs,hsd->hd", scores.softmax(-1), values)
    return weights[f"{prefix}self_attn.o_proj.weight"] @ mixed.flatten()


def layer(attention_input, residual, position, weights, prefix, config, cache):
    x = residual + attend(attention_input, position, weights, prefix, config, cache)
    y = rms_norm(x, weights[f"{prefix}post_attention_layernorm.weight"], config)
    gate, up = weights[f"{prefix}mlp.gate_proj.weight"] @ y, weights[f"{prefix}mlp.up_proj.weight"] @ y
    return x + weights[f"{prefix}mlp.down_proj.weight"] @ (torch.nn.functional.silu(gate) * up)


class Head:
    """One head over one text. `hidden` of an entry is what the target or the entry before gives it; every entry
    returns its own hidden state and its logits. Positions are rotary ones."""

    modules = 1

    def __init__(self, config, weights, target):
        self.config, self.weights, self.target = config, weights, target
        self.modules = config.get("num_nextn_predict_layers", 1)
        self.caches = [[] for _ in range(self.modules)]

    def first_hidden(self, index):
        """What the target gives to the entry that follows its token `index`."""
        return self.target["final"][index]

    def token_of(self, choice):
        return choice


class Eagle3(Head):
    def __init__(self, config, weights, target):
        super().__init__(config, weights, target)
        self.prefix = "midlayer." if "midlayer.hidden_norm.weight" in weights else "layers.0."

    def first_hidden(self, index):
        w, taps = self.weights, [self.target[f"tap{tap}"][index] for tap in TAPS]
        if self.config.get("fc_norm"):
            taps = [rms_norm(tap, w[f"fc_norm.{i}.weight"], self.config) for i, tap in enumerate(taps)]
        both = torch.cat(taps)
        if self.config.get("norm_before_fc"):
            both = rms_norm(both, w["input_norm.weight"], self.config)
        return w["fc.weight"] @ both

    def token_of(self, choice):
        return choice + int(self.weights["d2t"][choice])

    def entry(self, module, token, hidden, position):
        w, normed = self.weights, rms_norm(hidden, self.weights[self.prefix + "hidden_norm.weight"], self.config)
        embedding = rms_norm(self.target["embedding"][token], w[self.prefix + "input_layernorm.weight"], self.config)
        residual = normed if self.config.get("norm_before_residual") else hidden
        out = layer(torch.cat((embedding, normed)), residual, position, w, self.prefix, self.config, self.caches[0])
        normed = rms_norm(out, w["norm.weight"], self.config)
        return normed if self.config.get("norm_output") else out, w["lm_head.weight"] @ normed


class Eagle(Head):
    def entry(self, module, token, hidden, position):
        both = torch.cat((self.target["embedding"][token], hidden))
        x = self.weights["fc.weight"] @ both + self.weights["fc.bias"]
        out = layer(x, x, position, self.weights, "layers.0.", self.config, self.caches[0])
        return out, self.target["head"] @ out


class Mtp(Head):
    def entry(self, module, token, hidden, position):
        w, prefix = self.weights, f"model.layers.{self.config['num_hidden_layers'] + module}."
        both = torch.cat((rms_norm(self.target["embedding"][token], w[prefix + "enorm.weight"], self.config),
                          rms_norm(hidden, w[prefix + "hnorm.weight"], self.config)))
        x = w[prefix + "eh_proj.weight"] @ both
        normed = rms_norm(x, w[prefix + "input_layernorm.weight"], self.config)
        out = layer(normed, x, position, w, prefix, self.config, self.caches[module])
        return out, self.target["head"] @ rms_norm(out, w[prefix + "shared_head.norm.weight"], self.config)


class Mimo(Head):
    """The state stands before the embedding, and what is chained has passed the last norm."""

    def entry(self, module, token, hidden, position):
        w, prefix = self.weights, "model.mtp_layers.0."
        both = torch.cat((rms_norm(hidden, w[prefix + "hidden_layernorm.weight"], self.config),
                          rms_norm(self.target["embedding"][token], w[prefix + "token_layernorm.weight"],
                                   self.config)))
        x = w[prefix + "input_proj.weight"] @ both
        normed = rms_norm(x, w[prefix + "input_layernorm.weight"], self.config)
        out = layer(normed, x, position, w, prefix, self.config, self.caches[module])
        out = rms_norm(out, w[prefix + "final_layernorm.weight"], self.config)
        return out, self.target["head"] @ out


KINDS = {"eagle3": Eagle3, "eagle3-speculators": Eagle3, "eagle": Eagle, "mtp": Mtp, "mtp-2": Mtp,
         "mimo": Mimo, "eagle3-1": Eagle3, "eagle3-1-speculators": Eagle3}


def catch_up(head, ids):
    """All entries that a text allows: per module the hidden states and the logits; module m begins at entry m + 1."""
    hiddens = [head.first_hidden(index) for index in range(len(ids))]  # hiddens[i]: for entry i + 1 of module 0
    result = []
    for module in range(head.modules):
        rows = [head.entry(module, ids[i], hiddens[i - 1 - module], i - 1 - module) for i in range(module + 1, len(ids))]
        result.append(rows)
        hiddens = [out for out, _ in rows]
    return result


def propose(head, ids):
    """Greedy chained drafts after `ids` (target's ids), and how far each was from the runner-up."""
    rows = catch_up(head, ids)
    (hidden, logits), drafts, gaps = rows[0][-1], [], []
    for number in range(1, DRAFTS + 1):
        top = logits.topk(2)
        gaps.append(round((top.values[0] - top.values[1]).item(), 5))
        drafts.append(head.token_of(int(top.indices[0])))
        if number < DRAFTS:
            module = min(number, head.modules - 1)
            entry = len(ids) - 1 + number
            hidden, logits = head.entry(module, drafts[-1], hidden, entry - 1 - module)
    return drafts, gaps


def run_target(ids):
    model = transformers.AutoModelForCausalLM.from_pretrained(TARGET, dtype=torch.float32).eval()
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_hidden_states=True)
    target = {f"tap{tap}": out.hidden_states[tap][0] for tap in TAPS}
    return {**target, "final": out.hidden_states[-1][0], "logits": out.logits[0],
            "embedding": model.get_input_embeddings().weight.detach(), "head": model.lm_head.weight.detach()}


def generate(name, ids, target, generator, tensors):
    """A head whose drafts vary and stay far from ties; the first such draw of the generator."""
    config = CONFIGS[name]
    while True:
        stored = random_weights(name, config, generator)
        weights = {key: value.float() if value.is_floating_point() else value for key, value in stored.items()}
        make = lambda: KINDS[name](config, weights, target)
        cases = [(length, *propose(make(), ids[:length])) for length in PREFIXES]
        gap = min(gap for _, _, gaps in cases for gap in gaps)
        if gap > MIN_GAP and len({token for _, drafts, _ in cases for token in drafts}) >= 10:
            break
    for module, rows in enumerate(catch_up(make(), ids), start=1):
        suffix = f".module{module}" if name == "mtp-2" else ""
        tensors[f"{name}{suffix}.hidden"] = torch.stack([out for out, _ in rows])
        tensors[f"{name}{suffix}.logits"] = torch.stack([logits for _, logits in rows])
    if name.startswith("eagle3") and name.endswith("-speculators"):
        stored["embed_tokens.weight"] = target["embedding"].to(torch.bfloat16)
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if name == "eagle3-1":
        torch.save(stored, folder / "pytorch_model.bin")
    else:
        save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    print(name, "smallest gap", gap, "drafts", [drafts for _, drafts, _ in cases],
          "std", round(tensors[f"{name}.module2.logits" if name == "mtp-2" else f"{name}.logits"].std().item(), 2))
    return {"name": name, "drafts": [{"prefix": length, "ids": drafts, "gaps": gaps} for length, drafts, gaps in cases]}


def add_one(name):
    golden = json.loads((OUT / "golden.json").read_text())
    tensors = load_file(OUT / "golden.safetensors")
    generator = torch.Generator().manual_seed(SEED + list(CONFIGS).index(name))
    head = generate(name, golden["ids"], run_target(golden["ids"]), generator, tensors)
    golden["heads"] = [other for other in golden["heads"] if other["name"] != name] + [head]
    (OUT / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    save_file(tensors, OUT / "golden.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=list(CONFIGS), help="one head")
    torch.set_num_threads(1)
    if (name := parser.parse_args().only) is not None:
        add_one(name)
        return
    generator = torch.Generator().manual_seed(SEED)
    ids = torch.randint(2, 250, (TOKENS,), generator=generator).tolist()
    target = run_target(ids)
    tensors = {f"target.{key}": target[key].contiguous() for key in (*(f"tap{tap}" for tap in TAPS), "final")}
    heads = [generate(name, ids, target, generator, tensors) for name in CONFIGS]
    (OUT / "golden.json").write_text(json.dumps(
        {"target": "architectures/llama", "torch": torch.__version__, "transformers": transformers.__version__,
         "seed": SEED, "ids": ids, "taps": TAPS, "heads": heads}, separators=(",", ":")) + "\n")
    save_file(tensors, OUT / "golden.safetensors")


if __name__ == "__main__":
    main()
