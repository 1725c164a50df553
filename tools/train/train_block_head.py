"""Trains a DFlash or DSpark head for a target: a block of masks behind any token of a text, drafted at once.

    python3 tools/train/train_block_head.py --data TOKENS --target MODEL --out FOLDER --max-seconds 900

Every row of a block learns the target's own distribution at its position (KL). With --kind dspark the row of the token
itself drafts, too, logits get what the draft before makes likely, and a confidence learns how much of the two
distributions is common. One core is enough for a small target.
"""

import argparse
import json
import pathlib
import time

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from data import Corpus
from export import write_json
from targets import TransformersTarget


def rotated(x, positions, theta):
    """x [batch, heads, rows, dim] at the positions [batch, rows]."""
    half = x.shape[-1] // 2
    angles = positions[:, None, :, None].float() * theta ** (-torch.arange(half) / half)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, self.dim = config["hidden_size"], config["head_dim"]
        queries, keys = config["num_attention_heads"] * self.dim, config["num_key_value_heads"] * self.dim
        self.theta = config["rope_theta"]
        self.q_proj, self.k_proj = nn.Linear(hidden, queries, bias=False), nn.Linear(hidden, keys, bias=False)
        self.v_proj, self.o_proj = nn.Linear(hidden, keys, bias=False), nn.Linear(queries, hidden, bias=False)
        self.q_norm, self.k_norm = (nn.RMSNorm(self.dim, config["rms_norm_eps"]) for _ in range(2))

    def forward(self, x, context, positions, seen):
        split = lambda rows: rows.view(*rows.shape[:2], -1, self.dim)
        both = torch.cat([context, x], 1)
        queries = rotated(self.q_norm(split(self.q_proj(x))).transpose(1, 2), positions[:, context.shape[1]:], self.theta)
        keys = rotated(self.k_norm(split(self.k_proj(both))).transpose(1, 2), positions, self.theta)
        values = split(self.v_proj(both)).transpose(1, 2)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, seen[:, None], enable_gqa=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj, self.up_proj = (nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = (
            nn.RMSNorm(config["hidden_size"], config["rms_norm_eps"]) for _ in range(2))
        self.self_attn, self.mlp = Attention(config), Mlp(config)

    def forward(self, x, context, positions, seen):
        x = x + self.self_attn(self.input_layernorm(x), context, positions, seen)
        return x + self.mlp(self.post_attention_layernorm(x))


class Markov(nn.Module):
    def __init__(self, vocab, rank):
        super().__init__()
        self.markov_w1, self.markov_w2 = nn.Embedding(vocab, rank), nn.Linear(rank, vocab, bias=False)
        nn.init.zeros_(self.markov_w2.weight)


class Confidence(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, 1)


class BlockHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        own = config["dflash_config"]
        hidden, taps = config["hidden_size"], len(own["target_layer_ids"])
        if rank := own.get("markov_rank"):
            self.markov_head = Markov(config["vocab_size"], rank)
            self.confidence_head = Confidence(hidden + rank)
        self.fc = nn.Linear(taps * hidden, hidden, bias=False)
        self.hidden_norm, self.norm = (nn.RMSNorm(hidden, config["rms_norm_eps"]) for _ in range(2))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))

    def forward(self, embedded, taps, positions, seen):
        context = self.hidden_norm(self.fc(taps))
        for layer in self.layers:
            embedded = layer(embedded, context, positions, seen)
        return self.norm(embedded)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder of prepare.py")
    parser.add_argument("--target", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--kind", choices=["dflash", "dspark"], default="dflash")
    parser.add_argument("--markov-rank", type=int, default=64, help="of dspark")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--taps", type=int, nargs="+", help="target layers whose outputs are read")
    parser.add_argument("--block-size", type=int, default=8)
    parser.add_argument("--mask-id", type=int, default=1, help="an id that no output has")
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--length", type=int, default=192)
    parser.add_argument("--anchors", type=int, default=48, help="blocks a row")
    parser.add_argument("--learning-rate", type=float, default=2.5e-3)
    parser.add_argument("--max-seconds", type=float, default=900)
    parser.add_argument("--seed", type=int, default=20261127)
    return parser.parse_args()


def config_of(args, target):
    layers = target["num_hidden_layers"]
    taps = args.taps or [1, layers // 2, layers - 2]
    keys = ("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim",
            "max_position_embeddings", "rope_theta", "rms_norm_eps", "hidden_act", "bos_token_id", "eos_token_id")
    own = {"mask_token_id": args.mask_id, "target_layer_ids": taps}
    if args.kind == "dspark":
        own |= {"projector_type": "dspark", "markov_rank": args.markov_rank, "markov_head_type": "vanilla",
                "enable_confidence_head": True, "confidence_head_with_markov": True}
    return {"architectures": ["DSparkDraftModel" if args.kind == "dspark" else "DFlashDraftModel"], "model_type": "qwen3", **{key: target[key] for key in keys},
            "num_hidden_layers": args.layers, "layer_types": ["full_attention"] * args.layers, "attention_bias": False,
            "block_size": args.block_size, "num_target_layers": layers, "tie_word_embeddings": False,
            "dtype": "bfloat16", "dflash_config": own}


def blocks_of(ids, anchors, args):
    """Ids, positions and what is seen of the blocks behind the anchors [rows, n] of the text `ids`."""
    rows, length = ids.shape
    size = args.block_size
    block = torch.full((*anchors.shape, size), args.mask_id)
    block[..., 0] = ids.gather(1, anchors)
    positions = (anchors[..., None] + torch.arange(size)).flatten(1)
    text = torch.arange(length).expand(rows, -1)
    of_text = text[:, None] < anchors.repeat_interleave(size, 1)[..., None]
    number = torch.arange(anchors.shape[1]).repeat_interleave(size)
    of_block = (number[:, None] == number[None]).expand(rows, -1, -1)
    return block.flatten(1), torch.cat([text, positions], 1), torch.cat([of_text, of_block], 2)


def learn(head, target, ids, args):
    """The loss of one batch and the share of greedy drafts that are the target's, by place."""
    size = args.block_size
    first = 0 if args.kind == "dspark" else 1  # row that drafts
    with torch.no_grad():
        states, taps = target.states(ids, [layer + 1 for layer in head.taps])
        anchors = torch.rand(ids.shape[0], ids.shape[1] - size).topk(args.anchors).indices + 1
        block, positions, seen = blocks_of(ids, anchors, args)
        # What the target says of a position stands at the position before it.
        places = positions[:, ids.shape[1]:].view(*anchors.shape, size)[..., first:].flatten(1) - first
        wanted = target.logits(states.gather(1, places[..., None].expand(-1, -1, states.shape[-1]))).float()
    out = head(target.embed_tokens(block), torch.cat(taps, -1), positions, seen)
    drafting = out.view(*anchors.shape, size, -1)[:, :, first:].flatten(1, 2)
    logits = target.logits(drafting).float()
    if args.kind == "dspark":
        before = head.markov_head.markov_w1(ids.gather(1, places))
        logits = logits + head.markov_head.markov_w2(before)
        sure = head.confidence_head.proj(torch.cat([drafting, before], -1).detach())[..., 0]
        common = torch.minimum(logits.detach().softmax(-1), wanted.softmax(-1)).sum(-1)
    losses = functional.kl_div(logits.log_softmax(-1), wanted.log_softmax(-1), log_target=True, reduction="none").sum(-1)
    weights = 0.85 ** torch.arange(size - first).float()
    by_place = losses.view(-1, size - first).mean(0)
    hits = (logits.argmax(-1) == wanted.argmax(-1)).view(-1, size - first).float().mean(0)
    loss = (by_place * weights).sum() / weights.sum()
    if args.kind == "dspark":
        loss = loss + functional.binary_cross_entropy_with_logits(sure, common)
    return loss, hits


def main():
    args = parse_arguments()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    corpus = Corpus(args.data, args.seed)
    target = TransformersTarget(args.target, "cpu", torch.float32)
    config = config_of(args, json.loads((args.target / "config.json").read_text()))
    head = BlockHead(config)
    head.taps = config["dflash_config"]["target_layer_ids"]
    matrices = [weight for weight in head.parameters() if weight.ndim == 2]
    vectors = [weight for weight in head.parameters() if weight.ndim == 1]
    optimiser = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0}],
                                  lr=args.learning_rate, betas=(0.9, 0.95))
    start, step, log = time.monotonic(), 0, []
    while (passed := time.monotonic() - start) < args.max_seconds:
        progress = passed / args.max_seconds
        for group in optimiser.param_groups:
            group["lr"] = args.learning_rate * min(1, (step + 1) / 40) * (1 - progress) ** 0.7
        ids = torch.from_numpy(corpus.batch(args.rows, args.length - 1).astype("int64"))
        loss, hits = learn(head, target, ids, args)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 25 == 0:
            log.append({"step": step, "seconds": round(passed, 1), "loss": round(loss.item(), 4),
                        "hits": [round(hit, 3) for hit in hits.tolist()]})
            print(log[-1], flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    save_file({name: weight.detach().to(torch.bfloat16) for name, weight in head.state_dict().items()},
              args.out / "model.safetensors", metadata={"format": "pt"})
    write_json(args.out / "config.json", config)
    arguments = {name: str(value) for name, value in vars(args).items() if name not in ("data", "target", "out")}
    write_json(args.out / "training.json", {"parameters": sum(weight.numel() for weight in head.parameters()),
                                            "torch": torch.__version__, "arguments": arguments, "steps": step,
                                            "seconds": round(time.monotonic() - start, 1), "log": log}, indent=1)


if __name__ == "__main__":
    main()
