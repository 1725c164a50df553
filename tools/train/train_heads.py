"""Trains speculation heads for a target: EAGLE-3, EAGLE and MTP, all at once over one forward of the frozen target.

    python3 train_heads.py --data build/tokens --target models/foretoken-7m --out build --heads eagle3 eagle mtp

Writes OUT/<target>-<head> for each in its published layout. The text is that of the corpus and what the target writes to
prompts of it at temperatures 0 to 1. Needs torch, numpy, safetensors; transformers for targets that were not made here.
"""

import argparse
import copy
import dataclasses
import json
import math
import pathlib
import random
import time

import torch
from torch.nn import functional

from chains import acceptance, head_hits, model_hits
from data import Batches, Corpus
from head_export import export_head
from heads import KINDS, Eagle, Eagle3, Mtp, unroll
from llama import Mlp, RmsNorm, load
from rank_vocab import corpus_frequencies, ranked
from sampling import add_sampling_arguments, held_out_prompts, sample_texts, training_prompts
from targets import load_target
from trainer import Settings, compile_layers, make_optimizer, rate_at


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--target", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a folder for the heads' folders")
    parser.add_argument("--heads", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--compare", type=pathlib.Path, help="a draft model to report on as well")
    parser.add_argument("--intermediate-size", type=int, default=0, help="of the EAGLE heads' MLP; 0: the target's")
    parser.add_argument("--taps", type=int, nargs=3, help="layers whose inputs EAGLE-3 reads; default 2, n / 2, n - 3")
    parser.add_argument("--draft-vocab-size", type=int, default=0, help="of EAGLE-3; 0: the whole vocabulary")
    parser.add_argument("--mtp-modules", type=int, default=1)
    parser.add_argument("--unroll", type=int, default=4, help="steps of a chain that training makes")
    parser.add_argument("--step-decay", type=float, default=0.8, help="weight of a step's loss over that of the step before")
    parser.add_argument("--feature-weight", type=float, default=0.1, help="of EAGLE's smooth L1 loss beside the tokens' loss")
    add_sampling_arguments(parser, share=0.6)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--tokens", type=int, default=65536, help="tokens a step")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--short-share", type=float, default=0.9, help="of the schedule, in rows of 512 tokens")
    parser.add_argument("--learning-rate", type=float, default=6e-3)
    parser.add_argument("--max-seconds", type=float, default=math.inf, help="of the training; shortens its schedule")
    parser.add_argument("--report-every", type=int, default=250)
    parser.add_argument("--eval-prompts", type=int, default=48, help="held-out prompts of each source")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-compile", action="store_true")
    return parser.parse_args()


@torch.no_grad()
def state_sizes(target, ids):
    """Root mean squares of the embedding and of the state after the final norm, over some text."""
    size = lambda x: x.float().square().mean().sqrt().item()
    return size(target.embed_tokens(ids)), size(target.states(ids)[0])


def make_head(kind, target, args, order, ids):
    """`order`: the target's ids by falling frequency; `ids`: rows of text."""
    config = dataclasses.replace(target.config, dropout=0.0)
    layers = config.num_hidden_layers
    if kind == "mtp":
        return Mtp(config, layers, args.mtp_modules)
    config.intermediate_size = args.intermediate_size or config.intermediate_size
    if kind == "eagle":
        return Eagle(config, tuple(1 / size for size in state_sizes(target, ids)))
    kept, _ = torch.tensor(order[:args.draft_vocab_size or len(order)]).sort()
    head = Eagle3(config, args.taps or (2, layers // 2, layers - 3), kept)
    with torch.no_grad():
        head.lm_head.weight.copy_(target.output_weight()[kept.to(target.output_weight().device)])
    return head


def token_loss(logits, aim, weights):
    """Mean over weighted rows of the cross entropy to probabilities `aim`, which may sum to less than 1 (a part of the
    target's vocabulary)."""
    logits, aim = logits.float(), aim.float()
    loss = logits.logsumexp(-1) * aim.sum(-1) - (aim * logits).sum(-1)
    return (loss * weights).sum() / weights.sum()


class Lesson:
    """What all heads learn from in one batch: rows int64 [batch, length + 2]. `length` entries each."""

    def __init__(self, target, rows, taps):
        with torch.no_grad():
            ids = rows[:, :-1]
            final, tapped = target.states(ids, taps)
            self.taps = {tap: state[:, :-1] for tap, state in zip(taps, tapped)}
            self.embedding = target.embed_tokens(ids[:, 1:])
            self.final, self.next_final = final[:, :-1], final[:, 1:]
            self.aim = functional.softmax(target.logits(self.next_final).float(), -1).to(final.dtype).flatten(0, 1)
        self.batch, self.length = rows.shape[0], ids.shape[1] - 1

    def weights(self, step):
        """1 for the entries whose chain of step + 1 entries lies in the row."""
        weights = torch.ones(self.length, device=self.final.device)
        weights[:step] = 0
        return weights.repeat(self.batch)


class HeadRun:
    """A head in training, its optimizer and the running mean of its weights."""

    def __init__(self, head, settings, args):
        self.head, self.settings, self.args = head, settings, args
        self.average = copy.deepcopy(head).eval()
        self.optimizer = make_optimizer(head, settings)
        self.vocabulary = head.kept() if isinstance(head, Eagle3) and not bool(head.t2d.all()) else None

    def loss(self, lesson, target, token_loss):
        head, total = self.head, 0.0
        aim = lesson.aim if self.vocabulary is None else lesson.aim[:, self.vocabulary]
        taps = [lesson.taps[tap] for tap in head.taps]
        for step, (module, out) in enumerate(unroll(head, lesson.embedding, lesson.final, taps, self.args.unroll)):
            weights = lesson.weights(step)
            logits = head.logits(module, out, target).flatten(0, 1)
            loss = token_loss(logits, aim, weights)
            if isinstance(head, Eagle) and self.args.feature_weight:
                features = functional.smooth_l1_loss(out.float(), lesson.next_final.float(), reduction="none").mean(-1)
                loss = loss + self.args.feature_weight * (features.flatten() * weights).sum() / weights.sum()
            total = total + self.args.step_decay ** step * loss
        return total

    def step(self, number, progress, lesson, target, token_loss):
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(progress, number, self.settings)
        with torch.autocast(self.settings.device, torch.bfloat16):
            loss = self.loss(lesson, target, token_loss)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.head.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        decay = min(self.settings.average, (1 + number) / (10 + number))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.head.parameters()), 1 - decay)
        return loss.detach()

    def finished(self):
        """The mean weights, rounded to bf16."""
        self.average.fold()
        with torch.no_grad():
            for weight in self.average.parameters():
                weight.copy_(weight.to(torch.bfloat16))
        return self.average


class Lessons:
    """The target, the heads that learn from it, and whether compiled code is used."""

    def __init__(self, runs, target, settings):
        self.runs, self.target, self.settings = runs, target, settings
        self.taps = sorted({tap for run in runs.values() for tap in run.head.taps})
        self.use_compiler(settings.compile)

    def use_compiler(self, enabled):
        self.compiled = enabled
        compile_layers(self.target, enabled)
        self.loss = torch.compile(token_loss, dynamic=False) if enabled else token_loss
        for part in (part for run in self.runs.values() for part in run.head.modules()):
            if isinstance(part, (RmsNorm, Mlp)):
                if enabled:
                    part.compile(dynamic=False)
                else:
                    part._compiled_call_impl = None

    def learn(self, number, progress, rows):
        with torch.autocast(self.settings.device, torch.bfloat16):
            lesson = Lesson(self.target, rows, self.taps)
        return {name: run.step(number, progress, lesson, self.target, self.loss) for name, run in self.runs.items()}

    def step(self, number, progress, rows):
        """Losses by head."""
        rows = rows.to(self.settings.device, non_blocking=True)
        try:
            return self.learn(number, progress, rows)
        except Exception as error:  # any failure of the compiler: training goes on without it
            if not self.compiled:
                raise
            print(f"torch.compile failed, going on without it: {str(error)[:500]}", flush=True)
            self.use_compiler(False)
            for run in self.runs.values():
                run.optimizer.zero_grad(set_to_none=True)
            return self.learn(number, progress, rows)


def train(runs, target, corpus, settings, args):
    """Trains the heads of `runs`; returns steps, seconds and the loss of each head at every report."""
    lessons, start, number, log = Lessons(runs, target, settings), time.monotonic(), 0, []
    batches = Batches(corpus, settings.tokens, settings.short_context + 1, settings.device == "cuda")
    while (progress := max(number / settings.steps, (time.monotonic() - start) / settings.max_seconds)) < 1:
        if progress >= settings.short_share:
            batches.length = settings.context - 7  # entries stay a multiple of 8, positions below `context`
        losses = lessons.step(number, progress, batches.next())
        number += 1
        if number % args.report_every == 0:
            log.append({"step": number, "seconds": round(time.monotonic() - start, 1),
                        "loss": {name: round(loss.item(), 4) for name, loss in losses.items()}})
            print(json.dumps(log[-1]), flush=True)
    batches.stop()
    lessons.use_compiler(False)
    print(f"{number} steps in {time.monotonic() - start:.1f} s", flush=True)
    return {"steps": number, "seconds": round(time.monotonic() - start, 1), "log": log}


def held_out_texts(target, corpus, args, temperature):
    """{source: [(prompt, the target's answer), ..]} to openings of documents that no training saw."""
    prompts = held_out_prompts(corpus, args, random.Random(7), args.eval_prompts)
    asked = [prompt for part in prompts.values() for prompt in part]
    outputs = []
    for first in range(0, len(asked), args.sample_rows):
        part = asked[first:first + args.sample_rows]
        outputs += target.write(part, args.sample_tokens, args.device, [temperature] * len(part), 7)
    outputs = iter(outputs)
    return {name: [(prompt, next(outputs)) for prompt in part] for name, part in prompts.items()}


def report_on(name, hits_of, texts):
    """Acceptance on greedy and on sampled text of the target."""
    result = {how: acceptance(hits_of, groups) for how, groups in texts.items()}
    for how, part in result.items():
        print(f"{name}, {how}: per position {part['all']['per_position']}, mean length at 3 drafts "
              f"{part['all']['mean_length']}", flush=True)
        print("  " + ", ".join(f"{group} {row['mean_length']}" for group, row in part.items()), flush=True)
    return result


def main():
    args, start = parse_arguments(), time.monotonic()
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    generator, corpus = random.Random(args.seed), Corpus(args.data, args.seed)
    dtype = torch.bfloat16 if args.device == "cuda" else torch.float32
    target = load_target(args.target, args.device, dtype)
    texts = {"greedy": held_out_texts(target, corpus, args, 0.0), "temperature 0.8": held_out_texts(target, corpus, args, 0.8)}
    documents = sample_texts(target.write, training_prompts(corpus, args, generator), args, args.sample_seconds,
                             corpus.marks)
    corpus.add_source("target-text", documents, args.sample_share)
    order = ranked(corpus_frequencies(corpus, target.config.vocab_size))

    settings = Settings(steps=args.steps, tokens=args.tokens, context=args.context, short_context=min(512, args.context),
                        short_share=args.short_share, learning_rate=args.learning_rate, weight_decay=0.05, average=0.998,
                        max_seconds=args.max_seconds, device=args.device, compile=not args.no_compile)
    ids = torch.from_numpy(corpus.batch(4, 128).astype("int64")).to(args.device)
    runs = {kind: HeadRun(make_head(kind, target, args, order, ids).to(args.device), settings, args)
            for kind in args.heads}
    log = train(runs, target, corpus, settings, args)
    report = {"torch": torch.__version__, "sampled_texts": len(documents), "sampled_tokens": sum(map(len, documents)),
              "arguments": {name: str(value) for name, value in vars(args).items()
                            if name not in ("data", "out", "target", "compare")}, **log}
    heads = {kind: run.finished() for kind, run in runs.items()}
    save = lambda kind, more: export_head(
        kind, heads[kind], args.target, args.out / f"{args.target.name}-{kind}",
        {"parameters": heads[kind].parameter_count(), **report, **more})
    for kind in heads:
        save(kind, {"unfinished": True})
    if args.compare:
        draft = load(args.compare, args.device, dtype)
        compared = report_on(args.compare.name, lambda rows: model_hits(draft, rows, 4, args.device), texts)
        report["compared"] = {args.compare.name: compared}
    for kind, head in heads.items():
        exact = copy.deepcopy(head).to(dtype)
        save(kind, {"acceptance": report_on(kind, lambda rows: head_hits(exact, target, rows, 4, args.device), texts)})
    print(f"{time.monotonic() - start:.1f} s in all", flush=True)


if __name__ == "__main__":
    main()
