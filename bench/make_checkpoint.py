#!/usr/bin/env python3
"""Writes a Llama checkpoint with normal-distributed bf16 weights in the shape of a config.json.

    bench/make_checkpoint.py bench/configs/llama-3-8b OUT [--shard-gb 4]

For what needs files: cold starts, and two engines on the same weights. Names, shards and index as Hugging Face
has them; no tokenizer. Needs PyTorch and safetensors; makes the weights on a GPU where there is one.
"""

import argparse
import json
import pathlib
import shutil
import sys


def shapes(config):
    """(name, shape) of every tensor, in the order of the layers."""
    hidden = config["hidden_size"]
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or hidden // heads
    kv = config.get("num_key_value_heads", heads) * head_dim
    mlp = config["intermediate_size"]
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        start = f"model.layers.{layer}."
        yield start + "self_attn.q_proj.weight", (heads * head_dim, hidden)
        yield start + "self_attn.k_proj.weight", (kv, hidden)
        yield start + "self_attn.v_proj.weight", (kv, hidden)
        yield start + "self_attn.o_proj.weight", (hidden, heads * head_dim)
        yield start + "mlp.gate_proj.weight", (mlp, hidden)
        yield start + "mlp.up_proj.weight", (mlp, hidden)
        yield start + "mlp.down_proj.weight", (hidden, mlp)
        yield start + "input_layernorm.weight", (hidden,)
        yield start + "post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    if not config.get("tie_word_embeddings", False):
        yield "lm_head.weight", (config["vocab_size"], hidden)


def make(torch, shape, device, scale):
    if len(shape) == 1:
        return torch.ones(shape, dtype=torch.bfloat16)
    weight = torch.empty(shape, dtype=torch.bfloat16, device=device)
    return weight.normal_(0, scale).cpu()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", type=pathlib.Path, help="folder with a config.json")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--shard-gb", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    try:
        import torch  # not above: --help must work without
        from safetensors.torch import save_file
    except ModuleNotFoundError as error:
        sys.exit(f"{parser.prog} needs {error.name}, which is not installed: "
                 "`pip install torch safetensors`")
    config = json.loads((args.shape / "config.json").read_text(encoding="utf-8"))
    args.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(args.shape / "config.json", args.out / "config.json")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(args.seed)
    shards, sizes = [[]], [0]
    for name, shape in shapes(config):
        size = 2 * torch.Size(shape).numel()
        if sizes[-1] + size > args.shard_gb * 1e9 and shards[-1]:
            shards.append([])
            sizes.append(0)
        shards[-1].append((name, shape))
        sizes[-1] += size
    places = {}
    scale = config.get("initializer_range", 0.02)
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        tensors = {name: make(torch, shape, device, scale) for name, shape in shard}
        save_file(tensors, args.out / file, metadata={"format": "pt"})
        places.update({name: file for name in tensors})
    index = {"metadata": {"total_size": sum(sizes)}, "weight_map": places}
    (args.out / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    print(f"{args.out}: {len(shards)} files, {sum(sizes) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
