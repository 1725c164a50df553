"""Makes tests/golden/block_heads/: tiny random heads that draft a block at once, and what they draft, by plain PyTorch.

    python3 tools/golden/gen_block_heads.py
    python3 tools/golden/gen_block_heads.py --published dflash=MODEL.py   # compares with the published code as well

The target is tests/golden/architectures/llama, run by Hugging Face transformers. Needs torch, transformers and
safetensors. tests/golden/block_heads/README.md describes the output.
"""

import argparse
import importlib.util
import json
import pathlib

import torch
import transformers
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "tests" / "golden" / "architectures" / "llama"
OUT = ROOT / "tests" / "golden" / "block_heads"
SEED, STEPS, FIRST, MASK, HEAD_DIM = 20261127, 64, 3, 255, 16

COMMON = {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", "vocab_size": 256, "hidden_size": 32,
          "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "head_dim": HEAD_DIM, "max_position_embeddings": 512, "rope_theta": 20000.0, "rms_norm_eps": 1e-6,
          "hidden_act": "silu", "attention_bias": False, "attention_dropout": 0.0, "num_target_layers": 3,
          "tie_word_embeddings": False, "dtype": "bfloat16", "block_size": 6, "sliding_window": None,
          "use_sliding_window": False, "layer_types": ["full_attention", "full_attention"],
          "dflash_config": {"mask_token_id": MASK, "target_layer_ids": [0, 1]}}
CONFIGS = {
    "dflash": COMMON,
    # Rows of layers with a window do not see what stands behind them.
    "dflash-windows": {**COMMON, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 9,
                       "use_sliding_window": True, "max_window_layers": 0},
    # The first row drafts too, and a draft adds to the logits of the next one.
    "dspark": {**COMMON, "architectures": ["DSparkDraftModel"], "block_size": 5,
               "dflash_config": {**COMMON["dflash_config"], "projector_type": "dspark", "markov_rank": 32,
                                 "markov_head_type": "vanilla", "enable_confidence_head": True,
                                 "confidence_head_with_markov": True}},
    # A recurrent state of all drafts before adds to the logits of all but the first.
    "domino": {**COMMON, "architectures": ["DominoDraftModel"], "block_size": 5,
               "dflash_config": {**COMMON["dflash_config"], "projector_type": "domino", "emb_dim": 16,
                                 "gru_hidden_dim": 24, "pure_draft_prefix_len": 1, "shift_label": True}},
    # The same where the first row drafts nothing.
    "domino-behind": {**COMMON, "architectures": ["DominoDraftModel"], "block_size": 6,
                      "dflash_config": {**COMMON["dflash_config"], "projector_type": "domino", "emb_dim": 16,
                                        "gru_hidden_dim": 24, "pure_draft_prefix_len": 0, "shift_label": False}},
    # As speculators has it: a reduced vocabulary, the first row drafts nothing.
    "dspark-speculators": {
        "architectures": ["DSparkSpeculator"], "speculators_model_type": "dspark", "speculators_version": "0.7.0",
        "draft_vocab_size": 160, "block_size": 6, "mask_token_id": MASK, "aux_hidden_state_layer_ids": [1, 2],
        "sample_from_anchor": False, "sliding_window_non_causal": False, "markov_rank": 32,
        "markov_head_type": "vanilla", "enable_confidence_head": True, "confidence_head_with_markov": True,
        "transformer_layer_config": {key: value for key, value in COMMON.items()
                                     if key not in ("architectures", "block_size", "dflash_config", "num_target_layers")}},
}


# What leaves the target's last layer, before its norm.
CONFIGS["dflash-last"] = {**COMMON, "dflash_config": {"mask_token_id": MASK, "target_layer_ids": [0, 2]}}


def flat(config):
    """The fields of a config.json side by side."""
    return {**config, **config.get("transformer_layer_config", {}), **config.get("dflash_config", {})}


def taps_of(config):
    """Numbers of the states that are read, that of the embedding being 0."""
    fields = flat(config)
    return fields.get("aux_hidden_state_layer_ids") or [layer + 1 for layer in fields["target_layer_ids"]]


def anchor_drafts(config):
    """Whether the first row of a block drafts, too."""
    fields = flat(config)
    return fields.get("sample_from_anchor", fields.get("shift_label", "markov_rank" in fields))


def run_target(ids):
    model = transformers.AutoModelForCausalLM.from_pretrained(TARGET, dtype=torch.float32).eval()
    left = []  # transformers norms what leaves the last layer
    model.model.norm.register_forward_pre_hook(lambda _, rows: left.append(rows[0].clone()))
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_hidden_states=True)
    return {"states": (*out.hidden_states[:-1], left[0]), "embedding": model.get_input_embeddings().weight.detach(),
            "head": model.lm_head.weight.detach()}


def shapes(config):
    taps, config = len(taps_of(config)), flat(config)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    queries, keys = config["num_attention_heads"] * HEAD_DIM, config["num_key_value_heads"] * HEAD_DIM
    rank, state = config.get("markov_rank", 0), config.get("gru_hidden_dim", 0)
    vocab, rows = config["vocab_size"], config.get("draft_vocab_size", config["vocab_size"])
    all_shapes = {"fc.weight": (hidden, taps * hidden), "hidden_norm.weight": (hidden,), "norm.weight": (hidden,)}
    for layer in range(config["num_hidden_layers"]):
        base = f"layers.{layer}."
        all_shapes |= {
            base + "input_layernorm.weight": (hidden,), base + "post_attention_layernorm.weight": (hidden,),
            base + "self_attn.q_proj.weight": (queries, hidden), base + "self_attn.k_proj.weight": (keys, hidden),
            base + "self_attn.v_proj.weight": (keys, hidden), base + "self_attn.o_proj.weight": (hidden, queries),
            base + "self_attn.q_norm.weight": (HEAD_DIM,), base + "self_attn.k_norm.weight": (HEAD_DIM,),
            base + "mlp.gate_proj.weight": (inner, hidden), base + "mlp.up_proj.weight": (inner, hidden),
            base + "mlp.down_proj.weight": (hidden, inner)}
    if rank:
        all_shapes |= {"markov_head.markov_w1.weight": (vocab, rank), "markov_head.markov_w2.weight": (rows, rank),
                       "confidence_head.proj.weight": (1, hidden + rank), "confidence_head.proj.bias": (1,)}
    if state:
        added = config["emb_dim"]
        all_shapes |= {"prefix_gru.weight_ih_l0": (3 * state, hidden), "prefix_gru.weight_hh_l0": (3 * state, state),
                       "embed_proj.0.weight": (added, hidden + state), "embed_proj.2.weight": (rows, added)}
    if rows != vocab:
        all_shapes["lm_head.weight"] = (rows, hidden)
    return all_shapes


def reduced(config, generator):
    """Which ids a reduced vocabulary has, as the files have it."""
    fields = flat(config)
    rows, vocab = fields.get("draft_vocab_size", fields["vocab_size"]), fields["vocab_size"]
    if rows == vocab:
        return {}
    ids = torch.randperm(vocab, generator=generator)[:rows].sort().values
    kept = torch.zeros(vocab, dtype=torch.bool)
    kept[ids] = True
    return {"d2t": ids - torch.arange(rows), "t2d": kept}


def random_weights(config, generator):
    weights = {}
    for name, shape in shapes(config).items():
        noise = torch.randn(shape, generator=generator)
        weights[name] = (1 + 0.3 * noise if len(shape) == 1 else 1.6 * noise / shape[1] ** 0.5).to(torch.bfloat16)
    return weights | reduced(config, generator)


def norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def turned(x, positions, theta):
    """x [rows, heads, HEAD_DIM], rotated at its rows' positions."""
    half = HEAD_DIM // 2
    angles = positions[:, None].float() * theta ** (-torch.arange(half).float() / half)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


class BlockHead:
    """One block behind `length` tokens, of which the target has computed all but the last."""

    def __init__(self, config, weights, target):
        self.config, self.weights, self.target = flat(config), weights, target
        self.taps, self.anchored = taps_of(config), anchor_drafts(config)

    def context(self, count):
        """What layers make keys and values of, for positions [0, count)."""
        taps = [self.target["states"][tap][0, :count] for tap in self.taps]
        fused = torch.cat(taps, -1) @ self.weights["fc.weight"].T
        return norm(fused, self.weights["hidden_norm.weight"], self.config["rms_norm_eps"])

    def attention(self, layer, x, context):
        config, base = self.config, f"layers.{layer}.self_attn."
        take = lambda name, rows: (rows @ self.weights[f"{base}{name}_proj.weight"].T).view(len(rows), -1, HEAD_DIM)
        normed = lambda name, rows: norm(rows, self.weights[f"{base}{name}_norm.weight"], config["rms_norm_eps"])
        seen, rows = len(context), len(x)
        positions = torch.arange(seen + rows)
        both = torch.cat([context, x])
        queries = turned(normed("q", take("q", x)), positions[seen:], config["rope_theta"])
        keys = turned(normed("k", take("k", both)), positions, config["rope_theta"])
        values = take("v", both)
        groups = config["num_attention_heads"] // config["num_key_value_heads"]
        keys, values = keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)
        scores = torch.einsum("qhd,khd->hqk", queries, keys) / HEAD_DIM ** 0.5
        if config["layer_types"][layer] == "sliding_attention":
            behind = positions[seen:, None] - positions[None, :]
            scores = scores.masked_fill((behind < 0) | (behind >= config["sliding_window"]), float("-inf"))
        mixed = torch.einsum("hqk,khd->qhd", scores.softmax(-1), values).reshape(rows, -1)
        return mixed @ self.weights[base + "o_proj.weight"].T

    def run(self, block, count):
        """What the output matrix reads of the rows of a block of ids behind `count` computed positions."""
        eps, context = self.config["rms_norm_eps"], self.context(count)
        x = self.target["embedding"][torch.tensor(block)]
        for layer in range(self.config["num_hidden_layers"]):
            base = f"layers.{layer}."
            weight = lambda name: self.weights[base + name + ".weight"]
            x = x + self.attention(layer, norm(x, weight("input_layernorm"), eps), context)
            inner = norm(x, weight("post_attention_layernorm"), eps)
            gate = torch.nn.functional.silu(inner @ weight("mlp.gate_proj").T)
            x = x + (gate * (inner @ weight("mlp.up_proj").T)) @ weight("mlp.down_proj").T
        return norm(x, self.weights["norm.weight"], eps)

    def rows(self, ids, num_draft_tokens):
        """What the output matrix reads for each draft."""
        block = [ids[-1]] + [MASK] * (num_draft_tokens - self.anchored)
        return self.run(block, len(ids) - 1)[0 if self.anchored else 1:]

    def added(self, row, before, number):
        """What the tokens before a draft, the last known one first, add to its logits."""
        weights = self.weights
        if "markov_head.markov_w1.weight" in weights:
            return weights["markov_head.markov_w2.weight"] @ weights["markov_head.markov_w1.weight"][before[-1]]
        if "prefix_gru.weight_ih_l0" not in weights or number < self.config["pure_draft_prefix_len"]:
            return 0
        state = torch.zeros(self.config["gru_hidden_dim"])
        for token in before:
            of_input = weights["prefix_gru.weight_ih_l0"] @ self.target["embedding"][token]
            of_state = weights["prefix_gru.weight_hh_l0"] @ state
            (input_r, input_z, input_n), (state_r, state_z, state_n) = of_input.view(3, -1), of_state.view(3, -1)
            reset, update = torch.sigmoid(input_r + state_r), torch.sigmoid(input_z + state_z)
            new = torch.tanh(input_n + reset * state_n)
            state = (1 - update) * new + update * state
        inner = torch.nn.functional.silu(weights["embed_proj.0.weight"] @ torch.cat([row, state]))
        return weights["embed_proj.2.weight"] @ inner

    def drafts(self, ids, num_draft_tokens):
        drafts, gaps, before = [], [], [ids[-1]]
        matrix = self.weights.get("lm_head.weight", self.target["head"])
        for number, row in enumerate(self.rows(ids, num_draft_tokens)):
            best = (matrix @ row + self.added(row, before, number)).topk(2)
            draft = best.indices[0].item()
            drafts.append(draft + int(self.weights["d2t"][draft]) if "d2t" in self.weights else draft)
            before.append(drafts[-1])
            gaps.append((best.values[0] - best.values[1]).item())
        return drafts, min(gaps)

    def confidences(self, ids, drafts):
        """How sure the head is of each draft, before the sigmoid: of its row and what the draft before is embedded as."""
        rows = self.rows(ids, len(drafts))
        before = self.weights["markov_head.markov_w1.weight"][[ids[-1], *drafts[:-1]]]
        features = torch.cat([rows, before], -1)
        sure = features @ self.weights["confidence_head.proj.weight"][0] + self.weights["confidence_head.proj.bias"]
        return [round(value, 5) for value in sure.tolist()]


def published_drafts(code, config, weights, target, ids, num_draft_tokens):
    """The same by the module of the published code."""
    spec = importlib.util.spec_from_file_location("published", code)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    settings = transformers.Qwen3Config(**{key: value for key, value in config.items() if key != "architectures"})
    settings._attn_implementation = "sdpa"
    model = module.DFlashDraftModel(settings).eval()
    model.load_state_dict(weights)
    taps = [target["states"][layer + 1][:, :len(ids) - 1] for layer in config["dflash_config"]["target_layer_ids"]]
    block = torch.tensor([[ids[-1]] + [MASK] * num_draft_tokens])
    with torch.no_grad():
        rows = model(position_ids=torch.arange(len(ids) + num_draft_tokens)[None], target_hidden=torch.cat(taps, -1),
                     noise_embedding=target["embedding"][block])[0, 1:]
    return (rows @ target["head"].T).argmax(-1).tolist()


def generate(name, ids, target, generator, published):
    """A head whose drafts vary and stay far from ties; the first such draw of the generator."""
    config = CONFIGS[name]
    markov = "markov_rank" in flat(config)
    num_draft_tokens = config["block_size"] - (0 if anchor_drafts(config) else 1)
    lengths = range(FIRST, FIRST + STEPS)
    while True:
        stored = random_weights(config, generator)
        weights = {key: value.float() if value.is_floating_point() else value for key, value in stored.items()}
        head = BlockHead(config, weights, target)
        cases = [head.drafts(ids[:length], num_draft_tokens) for length in lengths]
        gap = min(gap for _, gap in cases)
        if gap > 2e-3 and len({token for drafts, _ in cases for token in drafts}) >= 40:
            break
    print(name, "smallest gap", gap, "different drafts", len({token for drafts, _ in cases for token in drafts}))
    if published is not None and not markov and name == "dflash":
        same = [published_drafts(published, config, weights, target, ids[:length], num_draft_tokens) == drafts
                for length, (drafts, _) in zip(lengths, cases)]
        print(name, "as published", sum(same), "of", len(same))
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    sure = {}
    if markov:
        sure["confidences"] = [head.confidences(ids[:length], drafts) for length, (drafts, _) in zip(lengths, cases)]
    return {"name": name, "drafts": [drafts for drafts, _ in cases], "gap": gap, **sure}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--published", help="a file with the published DFlashDraftModel")
    args = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    ids = torch.randint(2, 250, (FIRST + STEPS,), generator=generator).tolist()
    target = run_target(ids)
    heads = [generate(name, ids, target, generator, args.published) for name in CONFIGS]
    (OUT / "golden.json").write_text(json.dumps(
        {"target": "architectures/llama", "torch": torch.__version__, "transformers": transformers.__version__,
         "seed": SEED, "ids": ids, "first": FIRST, "heads": heads}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
