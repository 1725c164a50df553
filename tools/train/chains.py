"""How drafts of a head, or of a draft model, would fare on texts that the target wrote."""

import torch

from heads import unroll


def rows_of(texts, device):
    """Texts (lists of ids) as one padded tensor."""
    rows = torch.zeros(len(texts), max(map(len, texts)), dtype=torch.long)
    for row, text in zip(rows, texts):
        row[:len(text)] = torch.tensor(text)
    return rows.to(device)


@torch.no_grad()
def head_hits(head, target, texts, steps, device):
    """bool [texts, steps, entries]: at [s, p] whether draft s + 1 of a chain, made by the entry at index p, is the
    text's token p + 2. Chains are fed the text itself, which is what they drafted as long as they are accepted."""
    rows = rows_of(texts, device)
    final, taps = target.states(rows[:, :-1], head.taps)
    hits = torch.zeros(len(texts), steps, rows.shape[1] - 1, dtype=torch.bool)
    for step, (module, out) in enumerate(unroll(head, target.embed_tokens(rows[:, 1:]), final, taps, steps)):
        choices = head.draft_ids(head.logits(module, out, target).argmax(-1))
        hits[:, step, :-1] = (choices[:, :-1] == rows[:, 2:]).cpu()
    return hits


@torch.no_grad()
def model_hits(draft, texts, steps, device):
    """The same for a draft model, whose chained drafts do not depend on where the chain began."""
    rows = rows_of(texts, device)
    right = (draft(rows[:, :-1]).argmax(-1) == rows[:, 1:]).cpu()
    return torch.nn.functional.pad(right[:, 1:], (0, 1))[:, None].expand(-1, steps, -1)


def walk(hits, prompt_len, text_len, drafts):
    """Accepted drafts of each step of speculative decoding with `drafts` drafts a step, up to where they all fit."""
    accepted, length = [], prompt_len + 1
    while length + drafts <= text_len:
        count = 0
        while count < drafts and hits[count][length - 2 + count]:
            count += 1
        accepted.append(count)
        length += count + 1
    return accepted


def figures(accepted, drafts):
    """Share of steps that accept at least j drafts, for j = 1..drafts, and tokens a step."""
    steps = max(1, len(accepted))
    return {"steps": len(accepted), "per_position": [round(sum(n >= j for n in accepted) / steps, 4)
                                                     for j in range(1, drafts + 1)],
            "mean_length": round(1 + sum(accepted) / steps, 4)}


def acceptance(hits_of, groups, batch=32):
    """{group: figures} and "all"; `groups` are {name: [(prompt, output), ..]}, `hits_of(texts)` gives 4 steps of hits.

    Per position with 4 drafts a step, mean length with 3.
    """
    result, all_three, all_four = {}, [], []
    for name, texts in groups.items():
        three, four = [], []
        for first in range(0, len(texts), batch):
            part = texts[first:first + batch]
            for (prompt, output), hits in zip(part, hits_of([before + after for before, after in part]).tolist()):
                three += walk(hits, len(prompt), len(prompt) + len(output), 3)
                four += walk(hits, len(prompt), len(prompt) + len(output), 4)
        all_three, all_four = all_three + three, all_four + four
        result[name] = {**figures(four, 4), "mean_length": figures(three, 3)["mean_length"]}
    result["all"] = {**figures(all_four, 4), "mean_length": figures(all_three, 3)["mean_length"]}
    return result
