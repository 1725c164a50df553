"""Trains a small DeepSeek with its draft module on the output of prepare.py and writes a Hugging Face folder.

    python3 train_deepseek.py --data build/tokens --out build/foretoken-2m-deepseek --max-seconds 2400 --module-seconds 900

First the model, its experts kept even by the routers' biases; then the module on the frozen model's probabilities, over chains of
drafts as it will draft. Needs torch, numpy, safetensors and, to check and to sample, transformers.
"""

import argparse
import copy
import json
import math
import pathlib
import random
import time

import torch
from safetensors.torch import load_file
from torch.nn import functional

from chains import acceptance, head_hits
from data import Batches, Corpus
from deepseek import Config, DeepSeek, LatentMtp, published_state
from export import export_folder, write_json
from heads import unroll
from sampling import held_out_prompts
from targets import TransformersTarget
from trainer import Settings, make_optimizer, rate_at


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--sources", nargs="+", help="of the corpus; all when left out")
    parser.add_argument("--embedding-from", type=pathlib.Path,
                        help="a wider model with the same tokenizer, whose embedding's main components are the first one here")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--module-steps", type=int, default=3000)
    parser.add_argument("--max-seconds", type=float, default=math.inf, help="of the model's training; shortens its schedule")
    parser.add_argument("--module-seconds", type=float, default=math.inf, help="of the module's")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens a step")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--short-context", type=int, default=256)
    parser.add_argument("--short-share", type=float, default=0.8, help="of the schedule, in short rows")
    parser.add_argument("--learning-rate", type=float, default=4e-3)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--balance-speed", type=float, default=0.002, help="of the routers' biases, a step")
    parser.add_argument("--module-learning-rate", type=float, default=2e-3)
    parser.add_argument("--unroll", type=int, default=3, help="steps of a chain that the module learns")
    parser.add_argument("--step-decay", type=float, default=0.8)
    parser.add_argument("--evaluate-every", type=int, default=100)
    parser.add_argument("--eval-prompts", type=int, default=16, help="held-out prompts of each source")
    parser.add_argument("--sample-tokens", type=int, default=256, help="of prompt and text of these")
    parser.add_argument("--resume", action="store_true", help="go on with the module, the model being in OUT/model.pt")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=20261126)
    return parser.parse_args()


def settings_of(args, steps, seconds):
    return Settings(steps=steps, tokens=args.tokens, context=args.context, short_context=args.short_context,
                    short_share=args.short_share, learning_rate=args.learning_rate, weight_decay=args.weight_decay,
                    max_seconds=seconds, average=0.995)


@torch.no_grad()
def held_out_loss(model, corpus, windows=24, length=512):
    """{source: nats a token} over the first held-out windows of each, and their mean weighed as in training."""
    losses = {}
    for name in corpus.evaluation:
        inputs, targets = (torch.from_numpy(part[:windows]) for part in corpus.windows(name, length))
        losses[name] = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).item()
    shares = {name: weight for name, weight in zip(corpus.names, corpus.weights) if name in losses}
    losses["mean"] = sum(losses[name] * share for name, share in shares.items()) / sum(shares.values())
    return {name: round(loss, 4) for name, loss in losses.items()}


@torch.no_grad()
def rounded(part):
    """The same with weights that bf16 holds."""
    for weight in part.parameters():
        weight.copy_(weight.bfloat16())
    return part


class Lesson:
    """One part in training: its running mean of weights, its optimiser and its routers' balance."""

    def __init__(self, part, settings, args):
        self.part, self.settings, self.args = part, settings, args
        self.average = copy.deepcopy(part).eval()
        self.optimizer = make_optimizer(part, settings)

    def step(self, number, progress, loss):
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(progress, number, self.settings)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.part.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for router in self.part.routers():
            router.balance(self.args.balance_speed * (1 - progress))
        decay = min(self.settings.average, (1 + number) / (10 + number))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.part.parameters()), 1 - decay)
            for mean, own in zip(self.average.buffers(), self.part.buffers()):
                mean.copy_(own)

    def finished(self):
        return rounded(self.average)


def run(lesson, corpus, loss_of, report_of, extra=0):
    """Trains until the settings' end; `extra`: tokens of a row beyond its length that the loss needs."""
    settings, start, number, log = lesson.settings, time.monotonic(), 0, []
    batches = Batches(corpus, settings.tokens, settings.short_context + extra, False)
    while (progress := max(number / settings.steps, (time.monotonic() - start) / settings.max_seconds)) < 1:
        if progress >= settings.short_share:
            batches.length = settings.context + extra
        loss = loss_of(batches.next())
        lesson.step(number, progress, loss)
        number += 1
        if number % lesson.args.evaluate_every == 0:
            log.append({"step": number, "loss": round(loss.item(), 4), **report_of(number),
                        "seconds": round(time.monotonic() - start, 1)})
            print(json.dumps(log[-1]), flush=True)
    batches.stop()
    return {"steps": number, "tokens": settings.tokens, "sources": corpus.names,
            "seconds": round(time.monotonic() - start, 1), "log": log}


def main_components(folder, width):
    """The embedding of a wider model, turned so that `width` columns hold as much of it as they can."""
    wide = load_file(folder / "model.safetensors")["model.embed_tokens.weight"].float()
    left, sizes, _ = torch.linalg.svd(wide, full_matrices=False)
    return left[:, :width] * sizes[:width]


def train_model(corpus, args):
    model = DeepSeek(Config(vocab_size=corpus.summary["vocab_size"]))
    if args.embedding_from:
        model.embed_tokens.weight.data = main_components(args.embedding_from, model.config.hidden_size)
    print(f"{model.parameter_count()} parameters of the model", flush=True)
    lesson = Lesson(model, settings_of(args, args.steps, args.max_seconds), args)

    def loss_of(rows):
        return functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    def report_of(number):
        torch.save(lesson.average.state_dict(), args.out / "model.pt")
        spread = max((router.load.max() / router.load.float().mean()).item() for router in model.routers())
        if number % (5 * args.evaluate_every):
            return {"busiest_expert": round(spread, 2)}
        return {"busiest_expert": round(spread, 2), "held_out": held_out_loss(lesson.average, corpus, 4)["mean"]}

    log = run(lesson, corpus, loss_of, report_of)
    model = lesson.finished()
    torch.save(model.state_dict(), args.out / "model.pt")
    return model, log


def train_module(model, corpus, args):
    """The module learns the model's probabilities, each step of a chain weighed less than the one before."""
    module = LatentMtp(model.config)
    module.begin_as(model)
    print(f"{module.parameter_count()} parameters of the module", flush=True)
    lesson = Lesson(module, settings_of(args, args.module_steps, args.module_seconds), args)
    lesson.settings.short_share, lesson.settings.learning_rate = 1.0, args.module_learning_rate

    def loss_of(rows):
        with torch.no_grad():
            final, _ = model.states(rows[:, :-1])
            aim = model.logits(final).softmax(-1)
            embedding = model.embed_tokens(rows[:, 1:])
        total, weights = 0.0, 0.0
        for step, (index, out) in enumerate(unroll(module, embedding, final, (), args.unroll)):
            logits = module.logits(index, out[:, step:-1], model)
            weight = args.step_decay ** step
            total += weight * functional.cross_entropy(logits.flatten(0, 1), aim[:, step + 1:].flatten(0, 1))
            weights += weight
        return total / weights

    log = run(lesson, corpus, loss_of, lambda number: {}, extra=1)
    return lesson.finished(), log


def acceptance_of(module, model, target, corpus, args):
    """Accepted drafts on the model's own texts after openings of documents that no training saw."""
    prompts = held_out_prompts(corpus, args, random.Random(7), args.eval_prompts)
    asked = [prompt for part in prompts.values() for prompt in part]
    result = {}
    for how, temperature in (("greedy", 0.0), ("temperature 0.8", 0.8)):
        outputs = iter(target.write(asked, args.sample_tokens, "cpu", [temperature] * len(asked), 7))
        texts = {name: [(prompt, next(outputs)) for prompt in part] for name, part in prompts.items()}
        result[how] = acceptance(lambda rows: head_hits(module, model, rows, 4, "cpu"), texts)
        print(how, result[how]["all"], {name: row["mean_length"] for name, row in result[how].items()}, flush=True)
    return result


@torch.no_grad()
def check_against(target, model, corpus):
    """transformers computes the same from the folder."""
    rows = torch.from_numpy(corpus.batch(2, 256).astype("int64"))
    difference = (target.model(rows).logits - model(rows)).abs().max().item()
    print(f"largest difference of a logit from transformers: {difference:.2g}", flush=True)
    assert difference < 1e-3, difference


def export(model, module, args, report):
    weights = {"model." + name: weight for name, weight in published_state(model).items()}
    export_folder(weights | module.published_weights(), model.config, args.data / "tokenizer.json", args.out, report)


def main():
    args, start = parse_arguments(), time.monotonic()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(args.data, args.seed)
    if args.sources:
        corpus.keep(args.sources)
    report = {"torch": torch.__version__, "arguments": {name: str(value) for name, value in vars(args).items()
                                                        if name not in ("data", "out", "embedding_from")}}
    if args.resume:
        model = DeepSeek(Config(vocab_size=corpus.summary["vocab_size"])).eval()
        model.load_state_dict(torch.load(args.out / "model.pt"))
        model = rounded(model)
        report["model"] = json.loads((args.out / "model.json").read_text())
    else:
        model, report["model"] = train_model(corpus, args)
        write_json(args.out / "model.json", report["model"])
    model.requires_grad_(False)
    module, report["module"] = train_module(model, corpus, args)
    report |= {"parameters": model.parameter_count() + module.parameter_count(),
               "module_parameters": module.parameter_count()}
    export(model, module, args, report | {"unfinished": True})
    target = TransformersTarget(args.out, "cpu", torch.float32)
    check_against(target, model, corpus)
    report["held_out_nats"] = held_out_loss(model, corpus)
    print(report["held_out_nats"], flush=True)
    report["acceptance"] = acceptance_of(module, model, target, corpus, args)
    report["seconds"] = round(time.monotonic() - start, 1)
    export(model, module, args, report)


if __name__ == "__main__":
    main()
