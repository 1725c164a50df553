"""Trains Medusa heads or an MLP speculator for a small target, on texts that the target writes behind given prompts.

    python3 tools/train/train_chain_head.py --method medusa --target MODEL --prompts FILE.jsonl --out FOLDER
    python3 tools/train/train_chain_head.py --method mlp_speculator --inner 16 --heads 3 ...

Each draft learns the target's own distribution at its position (KL). Medusa heads have one block each and the target's
output matrix; the speculator's steps share their tensors. Prompts are JSON lines with "prompt". Needs torch,
transformers and safetensors; one core is enough for a target of some million parameters.
"""

import argparse
import json
import math
import pathlib
import time

import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional


def own_texts(model, tokenizer, args):
    """Ids of prompts, cut to 48, and of what the target goes on with: a third greedy, the others sampled."""
    prompts = [json.loads(line)["prompt"] for file in args.prompts for line in file.read_text().splitlines()]
    ids = [tokenizer.encode(prompt)[:48] for prompt in prompts] * args.rounds
    ids = sorted((row for row in ids if len(row) >= 8), key=len)
    texts = []
    for begin in range(0, len(ids), 32):
        length = len(ids[begin])
        rows = torch.tensor([row[:length] for row in ids[begin:begin + 32]])
        kind = {"do_sample": False} if begin // 32 % 3 == 0 else {"do_sample": True, "temperature": 0.8}
        texts.append(model.generate(rows, max_new_tokens=args.tokens, min_new_tokens=args.tokens, pad_token_id=0, top_k=0,
                                    top_p=1.0, **kind) if kind["do_sample"] else
                     model.generate(rows, max_new_tokens=args.tokens, min_new_tokens=args.tokens, pad_token_id=0))
    return texts


class Medusa(nn.Module):
    def __init__(self, hidden, args):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(args.heads)])
        for block in self.blocks:
            nn.init.zeros_(block.weight)
            nn.init.zeros_(block.bias)

    def forward(self, states, ids, head):
        """The logits of each draft behind the states of a row; ids[t + 1] is the known token behind state t."""
        count = states.shape[1] - len(self.blocks) - 1
        for block in self.blocks:
            state = states[:, :count]
            yield head(state + functional.silu(block(state)))

    def tensors(self):
        return {f"{i}.0.linear.{name}": value for i, block in enumerate(self.blocks)
                for name, value in block.named_parameters()}

    def config(self, target):
        return {"medusa_num_heads": len(self.blocks), "medusa_num_layers": 1, "base_model_name_or_path": target}


class MlpSpeculator(nn.Module):
    """All steps have one embedding, norm and output matrix."""

    def __init__(self, hidden, args, vocab):
        super().__init__()
        self.heads, self.inner, self.hidden, self.vocab = args.heads, args.inner, hidden, vocab
        self.emb, self.head = nn.Embedding(vocab, self.inner), nn.Linear(self.inner, vocab, bias=False)
        self.proj = nn.ModuleList([nn.Linear(size, self.inner, bias=False) for size in (hidden, self.inner)])
        self.weight, self.bias = nn.Parameter(torch.ones(self.inner)), nn.Parameter(torch.zeros(self.inner))
        nn.init.normal_(self.emb.weight, std=1 / math.sqrt(self.inner))
        state = 0.5 ** (0.5 / self.heads)
        self.scale = math.sqrt((1 - state * state) * self.inner / 2) / state

    def forward(self, states, ids, _):
        rms = lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        count = states.shape[1] - self.heads - 1
        state = rms(states[:, :count]) / math.sqrt(2)
        for step in range(self.heads):
            token = self.emb(ids[:, step + 1:step + 1 + count])
            mixed = self.proj[min(step, 1)](state) + self.scale * token
            state = functional.gelu(rms(mixed) * self.weight + self.bias)
            yield self.head(state)

    def tensors(self):
        named = {"emb.0.weight": self.emb.weight, "head.0.weight": self.head.weight, "ln.0.weight": self.weight,
                 "ln.0.bias": self.bias, "proj.0.weight": self.proj[0].weight, "proj.1.weight": self.proj[1].weight}
        return {"speculator." + name: value for name, value in named.items()}

    def config(self, _):
        return {"architectures": ["MLPSpeculatorPreTrainedModel"], "model_type": "mlp_speculator", "emb_dim": self.hidden,
                "inner_dim": self.inner, "vocab_size": self.vocab, "n_predict": self.heads, "n_candidates": 1,
                "top_k_tokens_per_head": [1] * self.heads, "tie_weights": True, "scale_input": True,
                "torch_dtype": "bfloat16"}


def losses(head, model, ids):
    """The mean KL to the target's distribution, and the share of best ids that are the target's, by place."""
    with torch.no_grad():
        states = model.model(ids).last_hidden_state
        wanted = model.lm_head(states)
    total, hits = 0, []
    for place, logits in enumerate(head(states, ids, model.lm_head)):
        target = wanted[:, place + 1:place + 1 + logits.shape[1]]
        total = total + functional.kl_div(logits.log_softmax(-1), target.log_softmax(-1), log_target=True,
                                          reduction="none").sum(-1).mean() * 0.8 ** place
        hits.append((logits.argmax(-1) == target.argmax(-1)).float().mean().item())
    return total, hits


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--method", choices=["medusa", "mlp_speculator"], required=True)
    parser.add_argument("--target", type=pathlib.Path, required=True)
    parser.add_argument("--prompts", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--inner", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1, help="texts behind each prompt")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--max-seconds", type=float, default=240)
    parser.add_argument("--seed", type=int, default=20261127)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    model = transformers.AutoModelForCausalLM.from_pretrained(args.target, dtype=torch.float32).eval().requires_grad_(False)
    texts = own_texts(model, transformers.AutoTokenizer.from_pretrained(args.target), args)
    hidden, vocab = model.config.hidden_size, model.config.vocab_size
    head = Medusa(hidden, args) if args.method == "medusa" else MlpSpeculator(hidden, args, vocab)
    optimizer = torch.optim.AdamW(head.parameters(), args.learning_rate, betas=(0.9, 0.95), weight_decay=0.01)
    held_out, texts = texts[::16], [rows for index, rows in enumerate(texts) if index % 16]
    start, step = time.monotonic(), 0
    while (passed := (time.monotonic() - start) / args.max_seconds) < 1:
        rows = texts[torch.randint(len(texts), (1,)).item()]
        ids = rows[torch.randperm(len(rows))[:8]]
        for group in optimizer.param_groups:
            group["lr"] = args.learning_rate * min(1, (step + 1) / 50) * (1 + math.cos(math.pi * passed)) / 2
        loss, hits = losses(head, model, ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(step, round(loss.item(), 3), [round(hit, 3) for hit in hits], flush=True)
        step += 1
    with torch.no_grad():
        hits = [sum(column) / len(column) for column in zip(*(losses(head, model, rows)[1] for rows in held_out))]
    args.out.mkdir(parents=True, exist_ok=True)
    file = "medusa_lm_head.safetensors" if args.method == "medusa" else "model.safetensors"
    save_file({name: value.detach().to(torch.bfloat16).contiguous() for name, value in head.tensors().items()},
              args.out / file, metadata={"format": "pt"})
    (args.out / "config.json").write_text(json.dumps(head.config(args.target.name), indent=1) + "\n")
    (args.out / "training.json").write_text(json.dumps(
        {"steps": step, "texts": sum(len(rows) for rows in texts), "held_out_hits": [round(hit, 3) for hit in hits],
         "arguments": {name: str(value) for name, value in vars(args).items()
                       if name not in ("out", "target", "prompts")}}, indent=1) + "\n")
    print("held out", hits)


if __name__ == "__main__":
    main()
