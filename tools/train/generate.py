"""Batched generation with a key/value cache, for sampling from a Llama of this folder."""

import torch
from torch.nn import functional

from data import END_OF_TEXT, END_OF_TURN
from llama import rotary_table, rotate


class Cache:
    """Keys and values of all layers, [rows, kv heads, length, head dim] each."""

    def __init__(self, config, rows, length, device, dtype):
        shape = (config.num_hidden_layers, rows, config.num_key_value_heads, length, config.head_dim)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)


def attend(layer, x, cos, sin, keys, values, position):
    """One query position of every row over the positions up to its own."""
    config, rows = layer.config, x.shape[0]
    heads = config.num_key_value_heads
    query = rotate(layer.q_proj(x).view(rows, -1, config.head_dim), cos, sin)
    keys[:, :, position] = rotate(layer.k_proj(x).view(rows, heads, config.head_dim), cos, sin).to(keys)
    values[:, :, position] = layer.v_proj(x).view(rows, heads, config.head_dim)
    query = query.to(keys).reshape(rows * heads, -1, config.head_dim)
    seen = slice(0, position + 1)
    scores = query @ keys.flatten(0, 1)[:, seen].transpose(1, 2) * config.head_dim ** -0.5
    mixed = scores.float().softmax(-1).to(values) @ values.flatten(0, 1)[:, seen]
    return layer.o_proj(mixed.reshape(rows, -1))


@torch.no_grad()
def next_logits(model, ids, cache, position, table):
    """float logits [rows, vocab] after `ids` [rows] at `position`."""
    cos, sin = table[0][position], table[1][position]
    x = model.embed_tokens(ids).to(cache.keys.dtype)
    for index, layer in enumerate(model.layers):
        x = x + attend(layer.self_attn, layer.input_layernorm(x), cos, sin, cache.keys[index], cache.values[index],
                       position)
        x = x + layer.mlp(layer.post_attention_layernorm(x))
    return functional.linear(model.norm(x), model.embed_tokens.weight).float()


def choose(logits, temperatures, noise):
    """Greedy where a row's temperature is 0, else sampled (Gumbel's trick)."""
    uniform = torch.rand(logits.shape, device=logits.device, generator=noise).clamp_min(1e-20)
    warm = logits / temperatures.clamp_min(1e-6)[:, None] - (-uniform.log()).log()
    return torch.where(temperatures[:, None] > 0, warm, logits).argmax(-1)


def generate(model, prompts, new_tokens, device, temperatures=None, seed=1, length=None):
    """Lists of generated ids, the end mark included where one came.

    `prompts` are lists of ids; prompt and output together stay within `length` (default: all that is asked for).
    `temperatures`: one a row, 0 for greedy.
    """
    length = min(length or 10**9, max(map(len, prompts)) + new_tokens, model.config.max_position_embeddings)
    rows, dtype = len(prompts), model.embed_tokens.weight.dtype
    given = torch.full((rows, length + 1), -1, dtype=torch.long)
    for row, prompt in zip(given, prompts):
        row[:len(prompt[:length])] = torch.tensor(prompt[:length])
    given = given.to(device)
    heat = torch.tensor(temperatures or [0.0] * rows, device=device)
    noise = torch.Generator(device).manual_seed(seed)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    finished = torch.zeros(rows, dtype=torch.bool, device=device)
    cache, table = Cache(model.config, rows, length, device, dtype), rotary_table(model.config, device)
    for position in range(length - 1):
        known = given[:, position + 1]
        guess = choose(next_logits(model, given[:, position], cache, position, table), heat, noise)
        guess = torch.where(finished, END_OF_TEXT, guess)
        made = known < 0
        given[:, position + 1] = torch.where(made, guess, known)
        finished |= made & ((guess == END_OF_TEXT) | (guess == END_OF_TURN))
        finished |= position + 1 >= lengths + new_tokens
        if position % 32 == 31 and bool(finished.all()):
            break
    return [cut(row[len(prompt):], new_tokens) for row, prompt in zip(given.tolist(), prompts)]


def cut(ids, limit):
    """Up to and including the first end mark, at most `limit`."""
    kept = []
    for token in ids[:limit]:
        if token < 0:
            break
        kept.append(token)
        if token in (END_OF_TEXT, END_OF_TURN):
            break
    return kept
