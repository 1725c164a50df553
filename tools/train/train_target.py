"""Trains a small Llama on the output of prepare.py and writes a Hugging Face folder.

    python3 train_target.py --data build/tokens --out build/foretoken-3m

Needs torch, numpy, safetensors. One seed, one machine and one library version give one result.
"""

import argparse
import json
import math
import pathlib
import queue
import shutil
import threading
import time

import torch
from safetensors.torch import save_file
from torch.nn import functional

from data import Corpus
from llama import Config, Llama

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}{{- '<|assistant|>' -}}"
    "{%- else -%}{{- '<|user|>' -}}{%- endif -%}"
    "{{- message['content'] -}}{{- '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--config", type=pathlib.Path, help="a config.json to take sizes from")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--rows", type=int, default=32, help="rows of --context tokens a step")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--weight-decay", type=float, default=0.5)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--evaluate-every", type=int, default=250)
    parser.add_argument("--stop-on",
                        default="tinystories,african-storybook,pratham-books,fairytales",
                        help="held-out sources whose mean bits per byte choose the kept weights")
    parser.add_argument("--max-seconds", type=float, default=math.inf,
                        help="shortens the learning-rate schedule when steps would take longer")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-compile", action="store_true")
    return parser.parse_args()


def batches(corpus, args):
    """Draws rows in a background thread; the order depends on the seed alone."""
    ready = queue.Queue(maxsize=16)

    def produce():
        while True:
            ready.put(torch.from_numpy(corpus.batch(args.rows, args.context).astype("int64")))

    threading.Thread(target=produce, daemon=True).start()
    while True:
        yield ready.get()


def bits_per_byte(model, corpus, args, names):
    """Negative log2 likelihood of each held-out text over its size in bytes."""
    result = {}
    model.eval()
    for name in names:
        inputs, targets = map(torch.from_numpy, corpus.windows(name, args.context))
        total = 0.0
        for i in range(0, len(inputs), args.rows):
            ids, wanted = inputs[i:i + args.rows].to(args.device), targets[i:i + args.rows]
            with torch.no_grad(), torch.autocast(args.device, torch.bfloat16):
                logits = model(ids)
            total += functional.cross_entropy(
                logits.float().flatten(0, 1), wanted.to(args.device).flatten(),
                reduction="sum").item()
        result[name] = total / math.log(2) / corpus.summary["evaluate"][name]["bytes"]
    model.train()
    return result


def make_optimizer(model, args):
    matrices = [weight for weight in model.parameters() if weight.dim() == 2]
    vectors = [weight for weight in model.parameters() if weight.dim() != 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": args.weight_decay},
                              {"params": vectors, "weight_decay": 0.0}],
                             lr=args.learning_rate, betas=(0.9, 0.95), fused=args.device == "cuda")


def train(model, corpus, args):
    """Leaves the weights with the lowest held-out figure in `model`; returns a log."""
    optimizer = make_optimizer(model, args)
    run = model if args.no_compile else torch.compile(model)
    watched = [name for name in args.stop_on.split(",") if name in corpus.summary["evaluate"]]
    watched = watched or list(corpus.summary["evaluate"])
    best, kept, log, start = math.inf, model.state_dict(), [], time.monotonic()
    step, progress = 0, 0.0
    for rows in batches(corpus, args):
        progress = max(step / args.steps, (time.monotonic() - start) / args.max_seconds)
        if progress >= 1:
            break
        cosine = 0.02 + 0.49 * (1 + math.cos(math.pi * progress))
        rate = min(1.0, (step + 1) / args.warmup) * cosine
        for group in optimizer.param_groups:
            group["lr"] = args.learning_rate * rate
        rows = rows.to(args.device, non_blocking=True)
        with torch.autocast(args.device, torch.bfloat16):
            logits = run(rows[:, :-1])
        loss = functional.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if step % args.evaluate_every == 0 or step == args.steps:
            figures = bits_per_byte(model, corpus, args, watched)
            mean = sum(figures.values()) / len(figures)
            log.append({"step": step, "loss": loss.item(), "held_out": mean,
                        "seconds": round(time.monotonic() - start, 1)})
            print(json.dumps(log[-1]), flush=True)
            if mean < best:
                best = mean
                kept = {name: weight.clone() for name, weight in model.state_dict().items()}
    model.load_state_dict(kept)
    return log


def export(model, args):
    args.out.mkdir(parents=True, exist_ok=True)
    write = lambda name, value: (args.out / name).write_text(json.dumps(value, indent=2) + "\n")
    save_file(model.hugging_face_weights(), args.out / "model.safetensors",
              metadata={"format": "pt"})
    write("config.json", model.config.to_hugging_face())
    write("generation_config.json", {"bos_token_id": 0, "eos_token_id": [0, 3], "do_sample": False})
    write("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": False, "add_eos_token": False,
        "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False, "chat_template": CHAT_TEMPLATE,
        "model_max_length": model.config.max_position_embeddings})
    shutil.copyfile(args.data / "tokenizer.json", args.out / "tokenizer.json")


def main():
    args = parse_arguments()
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    corpus = Corpus(args.data, args.seed)
    config = Config.from_hugging_face(args.config) if args.config else Config()
    config.vocab_size, config.dropout = corpus.summary["vocab_size"], args.dropout
    model = Llama(config).to(args.device)
    parameters = sum(weight.numel() for weight in model.parameters())
    print(f"{parameters} parameters", flush=True)
    log = train(model, corpus, args)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.to(torch.bfloat16))
    report = {"parameters": parameters, "torch": torch.__version__, "log": log,
              "arguments": {name: str(value) for name, value in vars(args).items()
                            if name not in ("data", "out", "config")},
              "bits_per_byte": bits_per_byte(model, corpus, args, corpus.summary["evaluate"])}
    export(model, args)
    (args.out / "training.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report["bits_per_byte"], indent=1))


if __name__ == "__main__":
    main()
