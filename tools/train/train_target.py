"""Trains a small Llama on the output of prepare.py and writes a Hugging Face folder.

    python3 train_target.py --data build/tokens --out build/foretoken-7m

With --teachers N, N larger models are trained first and the target learns from their mean probabilities as well, which helps a
small corpus go further. Needs torch, numpy, safetensors.
"""

import argparse
import dataclasses
import math
import pathlib
import time

import torch

from data import Corpus, Vocabulary
from evaluate import answers_right, bits_per_byte
from export import export
from llama import Config, Llama
from trainer import Settings, train

TEACHER = Config(hidden_size=384, intermediate_size=1024, num_hidden_layers=8, num_attention_heads=6, num_key_value_heads=6,
                 head_dim=64)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--pack", type=pathlib.Path, help="a tar file to hold the folder as well")
    parser.add_argument("--config", type=pathlib.Path, help="a config.json to take sizes from")
    parser.add_argument("--teachers", type=int, default=0)
    parser.add_argument("--teacher-steps", type=int, default=5000)
    parser.add_argument("--teacher-seconds", type=float, default=math.inf, help="for each")
    parser.add_argument("--teacher-dropout", type=float, default=0.3)
    parser.add_argument("--soft-share", type=float, default=0.6, help="of the loss, for the teachers")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--tokens", type=int, default=65536, help="tokens a step")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--short-share", type=float, default=0.6, help="of the schedule, in rows of 512 tokens")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--weight-decay", type=float, default=0.5)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--evaluate-every", type=int, default=500)
    parser.add_argument("--max-seconds", type=float, default=math.inf,
                        help="of the target's own training; shortens the learning-rate schedule")
    parser.add_argument("--questions", type=int, default=1000, help="held-out sums to try at the end")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-compile", action="store_true")
    return parser.parse_args()


def settings_of(args):
    return Settings(steps=args.steps, tokens=args.tokens, context=args.context, short_context=min(512, args.context),
                    short_share=args.short_share, learning_rate=args.learning_rate, weight_decay=args.weight_decay,
                    warmup=args.warmup, evaluate_every=args.evaluate_every, max_seconds=args.max_seconds,
                    device=args.device, compile=not args.no_compile)


def make(config, args, dropout):
    model = Llama(dataclasses.replace(config, dropout=dropout)).to(args.device)
    print(f"{model.parameter_count()} parameters", flush=True)
    return model


def train_teachers(args, vocab_size):
    """Frozen bf16 models and what was logged; each has its own order of documents and first weights."""
    teachers, logs = [], []
    for index in range(args.teachers):
        torch.manual_seed(args.seed + 1 + index)
        corpus = Corpus(args.data, args.seed + 1 + index)
        settings = dataclasses.replace(settings_of(args), steps=args.teacher_steps, max_seconds=args.teacher_seconds,
                                       learning_rate=2e-3)
        model = make(dataclasses.replace(TEACHER, vocab_size=vocab_size), args, args.teacher_dropout)
        log = train(model, corpus, settings)
        figures = bits_per_byte(model, corpus, corpus.evaluation, settings)
        print(f"teacher {index + 1}: {figures}", flush=True)
        logs.append({"parameters": model.parameter_count(), "log": log, "bits_per_byte": figures})
        teachers.append(model.to(torch.bfloat16).requires_grad_(False))
    return teachers, logs


def main():
    args, start = parse_arguments(), time.monotonic()
    torch.set_float32_matmul_precision("high")
    corpus, vocabulary = Corpus(args.data, args.seed), Vocabulary(args.data / "tokenizer.json")
    config = Config.from_hugging_face(args.config) if args.config else Config()
    config.vocab_size = corpus.summary["vocab_size"]
    teachers, teacher_logs = train_teachers(args, config.vocab_size)
    torch.manual_seed(args.seed)
    model, settings = make(config, args, args.dropout), settings_of(args)
    settings.soft_share = args.soft_share if teachers else 0.0
    report = {"parameters": model.parameter_count(), "torch": torch.__version__,
              "arguments": {name: str(value) for name, value in vars(args).items()
                            if name not in ("data", "out", "config", "pack")}, "teachers": teacher_logs}
    save = lambda best: export(best, args.data / "tokenizer.json", args.out, {**report, "unfinished": True}, args.pack)
    report["log"] = train(model, corpus, settings, teachers, save)
    save(model)
    report["bits_per_byte"] = bits_per_byte(model, corpus, corpus.evaluation, settings)
    solver = model.to(torch.bfloat16) if args.device == "cuda" else model
    report["sums_right"] = {}
    for name in ("arithmetic", "gsm8k-train"):
        if name in corpus.evaluation and args.questions:
            share, shown = answers_right(solver, corpus, vocabulary, name, args.questions, args.device)
            report["sums_right"][name] = round(share, 4)
            print(f"{name}: {share:.3f} of held-out questions right; first ones: {shown}", flush=True)
    report["seconds"] = round(time.monotonic() - start, 1)
    export(model, args.data / "tokenizer.json", args.out, report, args.pack)
    print({name: report[name] for name in ("bits_per_byte", "sums_right", "seconds")}, flush=True)


if __name__ == "__main__":
    main()
