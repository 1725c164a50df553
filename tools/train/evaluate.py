"""Held-out figures: bits per byte, sums solved, and how often a draft agrees with its target."""

import math
import re

import torch
from torch.nn import functional

from data import first_question, split_documents, windows
from generate import generate


def bits_per_byte(model, corpus, names, settings):
    """Negative log2 likelihood of each held-out text over its size in bytes; leaves `model` in the mode it had."""
    result, was_training = {}, model.training
    model.eval()
    rows = max(1, settings.tokens // settings.context)
    for name in names:
        inputs, targets = map(torch.from_numpy, corpus.windows(name, settings.context))
        total = 0.0
        for i in range(0, len(inputs), rows):
            with torch.no_grad(), torch.autocast(settings.device, torch.bfloat16):
                logits = model(inputs[i:i + rows].to(settings.device))
            total += functional.cross_entropy(logits.float().flatten(0, 1),
                                              targets[i:i + rows].to(settings.device).flatten(),
                                              reduction="sum").item()
        result[name] = round(total / math.log(2) / corpus.summary["evaluate"][name]["bytes"], 4)
    model.train(was_training)
    return result


def last_number(text):
    found = re.findall(r"-?\d+", re.sub(r"(?<=\d),(?=\d)", "", text))
    return found[-1] if found else None


def answers_right(model, corpus, vocabulary, name, count, device):
    """Share of the first `count` held-out questions whose greedy answer ends in the right number, and five answers."""
    chats = [first_question(document) for document in split_documents(corpus.evaluation[name])[:count]]
    outputs = generate(model, [question for question, _ in chats], 200, device)
    right, shown = 0, []
    for (question, answer), output in zip(chats, outputs):
        said = vocabulary.text(token for token in output if token > 3)
        right += last_number(said) == last_number(vocabulary.text(answer))
        shown.append({"question": vocabulary.text(question), "answer": said})
    return right / max(1, len(chats)), shown[:5]


def agreement(draft, target, tokens, device, length=512, limit=400):
    """Share of positions with the same most likely token, and the mean overlap of the two distributions.

    The overlap is the chance that speculative sampling at temperature 1 accepts one drafted token.
    """
    inputs, targets = map(torch.from_numpy, windows(tokens, length))
    inputs, targets = inputs[:limit], targets[:limit]
    same, overlap, count = 0.0, 0.0, 0
    for i in range(0, len(inputs), 16):
        ids, used = inputs[i:i + 16].to(device), targets[i:i + 16].to(device) >= 0
        with torch.no_grad():
            first, second = draft(ids).float()[used], target(ids).float()[used]
        same += (first.argmax(-1) == second.argmax(-1)).sum().item()
        overlap += torch.minimum(first.softmax(-1), second.softmax(-1)).sum().item()
        count += int(used.sum())
    return {"greedy": round(same / count, 4), "sampled": round(overlap / count, 4)}
