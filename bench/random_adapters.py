#!/usr/bin/env python3
"""Writes PEFT adapters of random numbers for a model, to measure steps with many of them.

    bench/random_adapters.py MODEL/config.json OUT --count 32 --rank 16 --modules q_proj,k_proj,v_proj,o_proj
    foretoken serve MODEL --load-format dummy --device cuda --enable-lora --max-loras 32 \\
        --lora-modules $(cd OUT; for a in *; do echo $a=$PWD/$a; done)
    foretoken bench serve --lora-modules $(ls OUT) --lora-assignment round-robin --max-concurrency 64
"""

import argparse
import json
import os
import pathlib
import struct

SEVEN = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"


def sizes_of(config):
    hidden, inner, heads = (config["hidden_size"], config["intermediate_size"],
                            config["num_attention_heads"])
    dim = config.get("head_dim") or hidden // heads
    query, key = heads * dim, (config.get("num_key_value_heads") or heads) * dim
    return {"q_proj": (hidden, query), "k_proj": (hidden, key), "v_proj": (hidden, key),
            "o_proj": (query, hidden), "gate_proj": (hidden, inner), "up_proj": (hidden, inner),
            "down_proj": (inner, hidden)}


def random_bf16(count):
    """About a hundredth in size, of either sign."""
    data = bytearray(os.urandom(2 * count))
    data[1::2] = bytes(data[1::2]).translate(bytes([0x3C] * 128 + [0xBC] * 128))
    return bytes(data)


def write_adapter(folder, config, modules, rank):
    folder.mkdir(parents=True)
    sizes = sizes_of(config)
    header, at = {}, 0
    for layer in range(config["num_hidden_layers"]):
        for module in modules:
            part = "self_attn" if module[0] in "qkvo" else "mlp"
            inputs, outputs = sizes[module]
            for letter, shape in (("A", [rank, inputs]), ("B", [outputs, rank])):
                name = f"base_model.model.model.layers.{layer}.{part}.{module}.lora_{letter}.weight"
                end = at + 2 * shape[0] * shape[1]
                header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
                at = end
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(folder / "adapter_model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        while at > 0:
            part = min(at, 1 << 26)
            file.write(random_bf16(part // 2))
            at -= part
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "bias": "none",
         "target_modules": list(modules)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--modules", default=SEVEN)
    options = parser.parse_args()
    config = json.loads(options.config.read_text())
    for i in range(options.count):
        write_adapter(options.out / f"a{i}", config, options.modules.split(","), options.rank)


if __name__ == "__main__":
    main()
