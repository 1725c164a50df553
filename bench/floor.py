"""What a forward of a dense decoder reads and computes at least. Standard library only."""

import dataclasses
import json
import pathlib

BYTES = 2  # of a bf16 number


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


class Shape:
    """Of a folder's config.json: a decoder, or an EAGLE head (`fc` over two states)."""

    def __init__(self, folder):
        config = json.loads((pathlib.Path(folder) / "config.json").read_text(encoding="utf-8"))
        hidden = config["hidden_size"]
        heads = config["num_attention_heads"]
        head_dim = config.get("head_dim") or hidden // heads
        kv_heads = config.get("num_key_value_heads", heads)
        self.layers = config["num_hidden_layers"]
        attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
        self.weights = self.layers * (attention + 3 * hidden * config["intermediate_size"])
        self.weights += config["vocab_size"] * hidden
        if config["architectures"][0].startswith("Eagle"):
            self.weights += 2 * hidden * hidden
        self.kv = 2 * self.layers * kv_heads * head_dim
        self.queries = self.layers * heads * head_dim

    def forward(self, num_seqs, rows_each, context):
        """With `context` positions behind each sequence; every row gives logits."""
        rows = num_seqs * rows_each
        positions = num_seqs * context
        return Cost(BYTES * (self.weights + self.kv * positions),
                    rows * (2 * self.weights + 4 * self.queries * context))
