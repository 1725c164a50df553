"""One training loop for teachers, target and draft: cross entropy, and KL to teachers where there are any."""

import copy
import dataclasses
import json
import math
import time

import torch
import torch._dynamo
from torch.nn import functional

from data import Batches
from evaluate import bits_per_byte


@dataclasses.dataclass
class Settings:
    """`max_seconds` shortens the learning-rate schedule when the steps would take longer."""
    steps: int = 8000
    tokens: int = 65536           # a step
    context: int = 2048
    short_context: int = 512      # rows of the first `short_share` of the schedule
    short_share: float = 0.6
    learning_rate: float = 3e-3
    weight_decay: float = 0.5
    warmup: int = 100
    average: float = 0.998        # decay of the running mean of weights, which is what is kept
    soft_share: float = 0.0       # of the loss, for teachers
    evaluate_every: int = 500
    max_seconds: float = math.inf
    stop_on: tuple = ("tinystories", "african-storybook", "pratham-books", "fairytales")
    keep_last: bool = False       # rather than the best on `stop_on`
    device: str = "cpu"
    compile: bool = False


# Several models and two row lengths go through the same code: without this the compiler gives up in silence.
for limit in ("recompile_limit", "cache_size_limit"):
    if hasattr(torch._dynamo.config, limit):
        setattr(torch._dynamo.config, limit, 64)


def compile_layers(model, enabled):
    """Compiles the one kind of layer, or calls the layers plainly again; much quicker to compile than the whole model."""
    for layer in model.layers:
        if enabled:
            layer.compile(dynamic=False)
        else:
            layer._compiled_call_impl = None


def loss_of(logits, wanted, soft_share, *teacher_logits):
    """Mean loss; the teachers' probabilities are averaged."""
    logits = logits.float().flatten(0, 1)
    hard = functional.cross_entropy(logits, wanted.flatten())
    if not teacher_logits:
        return hard
    aim = sum(functional.softmax(each.float().flatten(0, 1), -1) for each in teacher_logits) / len(teacher_logits)
    soft = -(aim * functional.log_softmax(logits, -1)).sum(-1).mean()
    return (1 - soft_share) * hard + soft_share * soft


def make_optimizer(model, settings):
    matrices = [weight for weight in model.parameters() if weight.dim() >= 2]
    vectors = [weight for weight in model.parameters() if weight.dim() < 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": settings.weight_decay},
                              {"params": vectors, "weight_decay": 0.0}],
                             lr=settings.learning_rate, betas=(0.9, 0.95), fused=settings.device == "cuda")


def rate_at(progress, step, settings):
    cosine = 0.01 + 0.495 * (1 + math.cos(math.pi * progress))
    return settings.learning_rate * min(1.0, (step + 1) / settings.warmup) * cosine


class Run:
    """A model in training, its running mean of weights, and the best of these by held-out figures."""

    def __init__(self, model, corpus, settings, teachers, save):
        self.model, self.corpus, self.settings, self.save = model, corpus, settings, save
        self.average = copy.deepcopy(model).eval()
        self.optimizer = make_optimizer(model, settings)
        self.teachers = [teacher.eval() for teacher in teachers]
        self.use_compiler(settings.compile)
        self.watched = [name for name in settings.stop_on if name in corpus.evaluation] or list(corpus.evaluation)
        self.best, self.kept, self.log = math.inf, None, []

    def use_compiler(self, enabled):
        self.compiled = enabled
        for each in [self.model, *self.teachers]:
            compile_layers(each, enabled)
        self.loss = torch.compile(loss_of, dynamic=False) if enabled else loss_of

    def gradients(self, rows):
        ids = rows[:, :-1].contiguous()
        with torch.autocast(self.settings.device, torch.bfloat16):
            with torch.no_grad():
                aims = [teacher(ids) for teacher in self.teachers]
            logits = self.model(ids)
        loss = self.loss(logits, rows[:, 1:].contiguous(), self.settings.soft_share, *aims)
        loss.backward()
        return loss

    def step(self, number, progress, rows):
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(progress, number, self.settings)
        rows = rows.to(self.settings.device, non_blocking=True)
        try:
            loss = self.gradients(rows)
        except Exception as error:  # any failure of the compiler: training goes on without it
            if not self.compiled:
                raise
            print(f"torch.compile failed, going on without it: {str(error)[:500]}", flush=True)
            self.use_compiler(False)
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.gradients(rows)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        decay = min(self.settings.average, (1 + number) / (10 + number))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.model.parameters()), 1 - decay)
        return loss

    def evaluate(self, number, progress, loss, seconds):
        figures = bits_per_byte(self.average, self.corpus, self.watched, self.settings)
        mean = sum(figures.values()) / len(figures)
        self.log.append({"step": number, "loss": round(loss.item(), 4), "held_out": round(mean, 4),
                         "seconds": round(seconds, 1)})
        print(json.dumps(self.log[-1]), flush=True)
        if mean < self.best or self.settings.keep_last:
            self.best = mean
            self.kept = {name: weight.clone() for name, weight in self.average.state_dict().items()}
            if self.save and progress > 0.4:
                self.save(self.average)


def train(model, corpus, settings, teachers=(), save=None):
    """Leaves the best running mean of weights in `model`; returns a log. `save` is called with each new best model."""
    run, start, number = Run(model, corpus, settings, teachers, save), time.monotonic(), 0
    batches = Batches(corpus, settings.tokens, settings.short_context if settings.short_share else settings.context,
                      settings.device == "cuda")
    while True:
        progress = max(number / settings.steps, (time.monotonic() - start) / settings.max_seconds)
        if progress >= 1:
            break
        if progress >= settings.short_share:
            batches.length = settings.context
        loss = run.step(number, progress, batches.next())
        number += 1
        if number % settings.evaluate_every == 0:
            run.evaluate(number, progress, loss, time.monotonic() - start)
    run.evaluate(number, 1.0, loss, time.monotonic() - start)
    batches.stop()
    run.use_compiler(False)
    model.load_state_dict(run.kept)
    model.eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.to(torch.bfloat16))
    return run.log
