"""Trains a draft model for a target: KL to the target's probabilities on corpus text and on the target's own text.

    python3 train_draft.py --data build/tokens --target build/foretoken-7m --out build/foretoken-7m-draft

The target's text comes from prompts of the training documents at temperatures 0 to 1. Needs torch, numpy, safetensors.
"""

import argparse
import math
import pathlib
import random
import time

import torch

from data import Corpus
from evaluate import agreement, bits_per_byte
from export import export
from llama import Config, Llama, load
from sampling import add_sampling_arguments, held_out_prompts, sample_texts, training_prompts, usual_end
from targets import OwnTarget
from trainer import Settings, train

DRAFT = Config(hidden_size=128, intermediate_size=224, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--target", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--pack", type=pathlib.Path, help="a tar file to hold the folder as well")
    parser.add_argument("--config", type=pathlib.Path, help="a config.json to take sizes from")
    add_sampling_arguments(parser, share=0.5)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--tokens", type=int, default=65536, help="tokens a step")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=6e-3)
    parser.add_argument("--max-seconds", type=float, default=math.inf, help="of the draft's training")
    parser.add_argument("--evaluate-every", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-compile", action="store_true")
    return parser.parse_args()


def acceptance(draft, target, corpus, args, generator):
    """Agreement of draft and target on held-out text and on what the target says to held-out prompts."""
    result = {"held_out_text": {}, "target_text": {}}
    for name, tokens in corpus.evaluation.items():
        result["held_out_text"][name] = agreement(draft, target, tokens, args.device)
    prompts = held_out_prompts(corpus, args, generator)
    asked = [prompt for part in prompts.values() for prompt in part]
    outputs = iter(target.write(asked, args.sample_tokens, args.device, None, 7))
    for name, part in prompts.items():
        tokens = [token for prompt in part for token in usual_end(prompt, next(outputs))]
        result["target_text"][name] = agreement(draft, target, tokens, args.device)
    return result


def main():
    args, start = parse_arguments(), time.monotonic()
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    generator, corpus = random.Random(args.seed), Corpus(args.data, args.seed)
    target = load(args.target, args.device, torch.bfloat16 if args.device == "cuda" else torch.float32, OwnTarget)
    target.requires_grad_(False)
    documents = sample_texts(target.write, training_prompts(corpus, args, generator), args, args.sample_seconds)
    corpus.add_source("target-text", documents, args.sample_share)

    config = Config.from_hugging_face(args.config) if args.config else DRAFT
    config.vocab_size = target.config.vocab_size
    draft = Llama(config).to(args.device)
    print(f"{draft.parameter_count()} parameters, a {target.parameter_count() / draft.parameter_count():.2f}th", flush=True)
    settings = Settings(steps=args.steps, tokens=args.tokens, context=args.context, short_context=min(512, args.context),
                        learning_rate=args.learning_rate, weight_decay=0.05, soft_share=1.0, average=0.998, keep_last=True,
                        evaluate_every=args.evaluate_every, max_seconds=args.max_seconds, device=args.device,
                        compile=not args.no_compile)
    report = {"parameters": draft.parameter_count(), "torch": torch.__version__, "sampled_texts": len(documents),
              "sampled_tokens": sum(map(len, documents)),
              "arguments": {name: str(value) for name, value in vars(args).items()
                            if name not in ("data", "out", "config", "pack", "target")}}
    save = lambda best: export(best, args.data / "tokenizer.json", args.out, {**report, "unfinished": True}, args.pack)
    report["log"] = train(draft, corpus, settings, [target], save)
    save(draft)
    report["bits_per_byte"] = bits_per_byte(draft, corpus, corpus.evaluation, settings)
    report["agreement"] = acceptance(draft.to(target.embed_tokens.weight.dtype), target, corpus, args, generator)
    report["seconds"] = round(time.monotonic() - start, 1)
    export(draft, args.data / "tokenizer.json", args.out, report, args.pack)
    print({name: report[name] for name in ("bits_per_byte", "agreement", "seconds")}, flush=True)


if __name__ == "__main__":
    main()
