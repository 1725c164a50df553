#!/usr/bin/env python3
"""Writes tests/golden/meta: a tiny random Llama as transformers saves it, and in Meta's own layout.

    python3 tools/golden/gen_meta_layout.py

`model` is transformers' folder, with "ids" and its "logits" in golden.safetensors. `whole` has one
file; `columns` and `vocabulary` have two, as tensor parallel checkpoints do, the first with the
embedding's columns divided (Llama 2), the other with its rows (Llama 3). Needs torch, transformers.
"""

import json
import pathlib

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

META = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/meta"
# int(8 * 64 / 3) = 170, of which 0.27 is 48 as a multiple of 16. Positions are those of Llama 3.2.
PARAMS = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 96,
          "multiple_of": 16, "ffn_dim_multiplier": 0.27, "norm_eps": 1e-05, "rope_theta": 500000.0,
          "use_scaled_rope": True}
CONFIG = dict(hidden_size=64, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, vocab_size=96, rms_norm_eps=1e-5, tie_word_embeddings=False,
              max_position_embeddings=131072, bos_token_id=1, eos_token_id=2,
              rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0,
                               "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 8192})
NAMES = {"self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk",
         "self_attn.v_proj": "attention.wv", "self_attn.o_proj": "attention.wo",
         "mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2",
         "mlp.up_proj": "feed_forward.w3", "input_layernorm": "attention_norm",
         "post_attention_layernorm": "ffn_norm", "model.embed_tokens": "tok_embeddings",
         "model.layers": "layers", "model.norm": "norm", "lm_head": "output"}
ROWS = ("wq.weight", "wk.weight", "wv.weight", "w1.weight", "w3.weight", "output.weight")
COLUMNS = ("wo.weight", "w2.weight")
HEAD = 16


def write_model(folder):
    torch.manual_seed(5)
    model = LlamaForCausalLM(LlamaConfig(**CONFIG)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(1 + 0.1 * torch.randn(weight.shape) if "norm" in name
                         else torch.randn(weight.shape) * weight.shape[-1] ** -0.5)
            weight.copy_(weight.to(torch.bfloat16).float())
        ids = torch.randint(0, PARAMS["vocab_size"], (1, 80))
        logits = model(ids).logits[0]
    model.to(torch.bfloat16).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    save_file({"ids": ids[0], "logits": logits.float().contiguous()}, folder / "golden.safetensors")


def own_layout(folder):
    """The tensors under Meta's names; the pairs that turn lie side by side in heads."""
    tensors = {"rope.freqs": torch.zeros(HEAD // 2)}
    for name, tensor in load_file(folder / "model.safetensors").items():
        if ".q_proj." in name or ".k_proj." in name:
            rows, cols = tensor.shape
            tensor = tensor.view(rows // HEAD, 2, HEAD // 2, cols).transpose(1, 2).reshape(rows, cols)
        for usual, own in NAMES.items():
            name = name.replace(usual, own)
        tensors[name] = tensor.contiguous()
    return tensors


def part(name, tensor, rank, size, table_axis):
    axis = (0 if name.endswith(ROWS) else 1 if name.endswith(COLUMNS)
            else table_axis if name == "tok_embeddings.weight" else None)
    return tensor if axis is None else tensor.chunk(size, axis)[rank].clone()


def main():
    (META / "model").mkdir(parents=True, exist_ok=True)
    write_model(META / "model")
    tensors = own_layout(META / "model")
    for name, size, table_axis in (("whole", 1, 0), ("columns", 2, 1), ("vocabulary", 2, 0)):
        out = META / name
        out.mkdir(exist_ok=True)
        (out / "params.json").write_text(json.dumps(PARAMS) + "\n")
        for rank in range(size):
            torch.save({key: part(key, value, rank, size, table_axis)
                        for key, value in tensors.items()}, out / f"consolidated.{rank:02}.pth")


if __name__ == "__main__":
    main()
