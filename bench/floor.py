"""What a forward of a decoder reads and computes at least. Standard library only."""

import dataclasses
import json
import pathlib

BYTES = 2  # of a bf16 number


@dataclasses.dataclass
class WeightBytes:
    """Of an element, with its share of scales: matrices of layers, those of experts, the output matrix."""
    layers: float = BYTES
    experts: float = BYTES
    head: float = BYTES


@dataclasses.dataclass
class Cost:
    bytes: float
    flops: float

    def __add__(self, other):
        return Cost(self.bytes + other.bytes, self.flops + other.flops)

    def __mul__(self, times):
        return Cost(self.bytes * times, self.flops * times)

    def seconds(self, read_tb_s, tflops):
        return max(self.bytes / (read_tb_s * 1e12), self.flops / (tflops * 1e12))


def attention_of(config):
    """Of one layer: weights, numbers kept of a position, and operations of a row and position."""
    hidden = config["hidden_size"]
    heads = config["num_attention_heads"]
    kv_rank = config.get("kv_lora_rank")
    if kv_rank:
        rope, value = config["qk_rope_head_dim"], config["v_head_dim"]
        query = heads * (config["qk_nope_head_dim"] + rope)
        q_rank = config.get("q_lora_rank")
        weights = q_rank * (hidden + query) if q_rank else hidden * query
        weights += hidden * (kv_rank + rope) + heads * value * hidden
        weights += kv_rank * heads * (config["qk_nope_head_dim"] + value)
        return weights, kv_rank + rope, 2 * heads * (2 * kv_rank + rope)
    head_dim = config.get("head_dim") or hidden // heads
    kv_heads = config.get("num_key_value_heads", heads)
    weights = hidden * head_dim * (2 * heads + 2 * kv_heads)
    return weights, 2 * kv_heads * head_dim, 4 * heads * head_dim


class Mixture:
    """The experts of a layer; without any where the config has none."""

    def __init__(self, config):
        def first(*names):
            return next((config[name] for name in names if config.get(name)), 0)

        hidden = config["hidden_size"]
        self.count = first("n_routed_experts", "num_experts", "num_local_experts")
        self.top_k = first("num_experts_per_tok", "moe_topk")
        inner = first("moe_intermediate_size", "intermediate_size")
        self.expert = 3 * hidden * inner
        shared = first("shared_expert_intermediate_size") or inner * first("n_shared_experts")
        self.always = hidden * self.count + 3 * hidden * shared
        layers = config["num_hidden_layers"]
        dense = set(config.get("mlp_only_layers") or [])
        dense |= set(range(config.get("first_k_dense_replace") or 0))
        step = config.get("decoder_sparse_step") or 1
        self.layers = sum(i not in dense and (i + 1) % step == 0 for i in range(layers))
        if not self.count:
            self.layers = 0

    def touched(self, rows):
        """Experts of a layer that so many rows touch which choose independently."""
        return self.count * (1 - (1 - self.top_k / self.count) ** rows) if self.count else 0


class Shape:
    """Of a folder's config.json: a decoder, an EAGLE head (`fc` over two states), or with `module`
    an MTP module of the decoder."""

    def __init__(self, folder, module=False, weight_bytes=WeightBytes()):
        config = json.loads((pathlib.Path(folder) / "config.json").read_text(encoding="utf-8"))
        hidden = config["hidden_size"]
        attention, kv, queries = attention_of(config)
        self.mixture = Mixture(config)
        layers = config["num_hidden_layers"]
        if module:
            self.mixture.layers = min(self.mixture.layers, 1)
            layers = 1
        dense = layers - self.mixture.layers
        self.weights = layers * attention + dense * 3 * hidden * config["intermediate_size"]
        self.weights += self.mixture.layers * self.mixture.always
        if module or config["architectures"][0].startswith("Eagle"):
            self.weights += 2 * hidden * hidden
        head = config["vocab_size"] * hidden
        self.bytes = self.weights * weight_bytes.layers + head * weight_bytes.head
        self.expert_bytes = weight_bytes.experts
        self.weights += head
        self.kv = layers * kv
        self.queries = layers * queries

    def forward(self, num_seqs, rows_each, context):
        """With `context` positions behind each sequence; every row gives logits."""
        rows = num_seqs * rows_each
        positions = num_seqs * context
        mixture = self.mixture
        read = mixture.layers * mixture.touched(rows) * mixture.expert
        computed = mixture.layers * mixture.top_k * mixture.expert
        return Cost(self.bytes + self.expert_bytes * read + BYTES * self.kv * positions,
                    rows * (2 * (self.weights + computed) + self.queries * context))
