"""What a forward of a decoder takes at least on one of several ranks. Standard library only."""

import dataclasses
import json
import pathlib

import floor

# An exchange between GPUs of one host: the least that one took, and the rate of many bytes (of the 450 GB/s that
# NVLink has in each direction).
EXCHANGE_SECONDS = 4e-6
EXCHANGE_GB_S = 400
FLOAT_BYTES = 4


@dataclasses.dataclass
class Layout:
    tp: int = 1
    pp: int = 1
    dp: int = 1
    deals_experts: bool = False  # over all ranks of a stage; else their inner columns are cut by tp

    def ranks_of_stage(self):
        return self.tp * self.dp


@dataclasses.dataclass
class Card:
    read_tb_s: float
    tflops: float

    def seconds(self, cost):
        return cost.seconds(self.read_tb_s, self.tflops)


def latent_weights(config):
    """Of a layer of latent attention: whole on every rank, cut by heads, and of these kept as bfloat16."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    q_rank, kv_rank = config.get("q_lora_rank"), config["kv_lora_rank"]
    nope, rope, value = config["qk_nope_head_dim"], config["qk_rope_head_dim"], config["v_head_dim"]
    whole = hidden * (kv_rank + rope + (q_rank or 0))
    cut = heads * ((nope + rope) * (q_rank or hidden) + value * hidden)
    return whole, cut, heads * kv_rank * (nope + value)


def layer_cost(config, layout, weight_bytes, rows, positions, context):
    """Attention and what it keeps, on a rank with `rows` rows of sequences with so many positions in all."""
    attention, kept, queries = floor.attention_of(config)
    if config.get("kv_lora_rank"):
        whole, cut, wide = latent_weights(config)
        read = (whole + cut / layout.tp) * weight_bytes.layers + wide / layout.tp * floor.BYTES
        numbers, kept_here = whole + (cut + wide) / layout.tp, kept
    else:
        read, numbers, kept_here = attention / layout.tp * weight_bytes.layers, attention / layout.tp, kept / layout.tp
    return floor.Cost(read + kept_here * positions * floor.BYTES,
                      rows * (2 * numbers + queries * context / layout.tp))


def mixture_cost(mixture, layout, weight_bytes, rows, all_rows):
    """Of one mixture: `all_rows` of all engines that share its experts."""
    ranks = layout.ranks_of_stage() if layout.deals_experts else layout.tp
    experts = mixture.touched(all_rows) * mixture.expert / ranks
    always = mixture.always / layout.tp
    computed = all_rows * mixture.top_k * mixture.expert / ranks
    return floor.Cost(experts * weight_bytes.experts + always * weight_bytes.layers, 2 * (rows * always + computed))


def exchange_seconds(ranks, rows, hidden):
    """The sum of rows over ranks: each sums a part and gives it to the others."""
    if ranks == 1:
        return 0.0
    sent = 2 * (ranks - 1) / ranks * rows * hidden * FLOAT_BYTES
    return max(EXCHANGE_SECONDS, sent / (EXCHANGE_GB_S * 1e9))


def forward(folder, weight_bytes, layout, card, num_seqs, rows_each, context, module=False):
    """Seconds of a step in which `num_seqs` sequences of all engines have so many rows each and `context` positions
    behind them; stages one after the other. module: the decoder's MTP module instead."""
    config = json.loads((pathlib.Path(folder) / "config.json").read_text(encoding="utf-8"))
    hidden, mixture = config["hidden_size"], floor.Mixture(config)
    seqs = -(-num_seqs // layout.dp)
    rows, all_rows = seqs * rows_each, num_seqs * rows_each
    layers = 1 if module else config["num_hidden_layers"]
    mixtures = min(mixture.layers, layers)
    cost = layer_cost(config, layout, weight_bytes, rows, seqs * context, context) * layers
    dense = 3 * hidden * config["intermediate_size"] / layout.tp
    cost += floor.Cost(dense * weight_bytes.layers, 2 * rows * dense) * (layers - mixtures)
    if mixtures > 0:
        cost += mixture_cost(mixture, layout, weight_bytes, rows, all_rows) * mixtures
    head = config["vocab_size"] * hidden / layout.tp
    cost += floor.Cost(head * weight_bytes.head, 2 * rows * head)
    if module or config["architectures"][0].startswith("Eagle"):
        joined = 2 * hidden * hidden
        cost += floor.Cost(joined * weight_bytes.layers, 2 * rows * joined)
    sums = 2 * layers * exchange_seconds(layout.tp, rows, hidden)
    if layout.dp > 1 and layout.deals_experts:
        sums += 2 * mixtures * exchange_seconds(layout.ranks_of_stage(), all_rows / 2, hidden)
    return card.seconds(cost) + sums
