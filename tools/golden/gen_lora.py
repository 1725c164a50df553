"""Writes tests/golden/lora: PEFT adapters of the tiny golden models, and what PEFT makes of them.

A case is a folder with adapter_config.json and adapter_model.safetensors, as save_pretrained writes
them, and golden.safetensors: "ids" of a prompt, and in float32 "logits" of the model with the
adapter and "base" of the model without it.

    python tools/golden/gen_lora.py           # all
    python tools/golden/gen_lora.py grouped   # one
"""

import json
import pathlib
import shutil
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
LENGTH = 70  # more than the rows of a step in the test
SHORT = 24   # of families that show where their matrices stand

SEVEN = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# Name: the model, the type of the file, and what LoraConfig is given.
CASES = {
    "all-seven": ("tiny-llama", torch.float32,
                  dict(r=6, lora_alpha=9, target_modules=SEVEN, rank_pattern={"k_proj": 3},
                       alpha_pattern={r"layers\.0\.mlp\.down_proj": 30})),
    "queries-and-values": ("tiny-llama", torch.bfloat16,
                           dict(r=8, lora_alpha=16, use_rslora=True,
                                target_modules=r"model\.layers\.[01]\.self_attn\.(q|v)_proj")),
    "one-layer": ("tiny-llama", torch.float16,
                  dict(r=2, lora_alpha=8, target_modules=["o_proj", "up_proj"],
                       layers_to_transform=[1])),
    "fused": ("architectures/phi3", torch.float32,
              dict(r=4, lora_alpha=8, target_modules="all-linear")),
    "transposed": ("architectures/gpt2", torch.bfloat16,
                   dict(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj", "c_fc"],
                        fan_in_fan_out=True)),
    "grouped": ("architectures/falcon-large", torch.bfloat16,
                dict(r=4, lora_alpha=8,
                     target_modules=["query_key_value", "dense", "dense_h_to_4h"])),
    "decoder": ("architectures/opt", torch.bfloat16,
                dict(r=4, lora_alpha=8, target_modules=["q_proj", "out_proj", "fc1", "fc2"])),
    "padded": ("architectures/doge", torch.bfloat16,
               dict(r=4, lora_alpha=8, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])),
    "padded-values": ("architectures/mimo_v2", torch.bfloat16,
                      dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "o_proj"])),
    "scaled": ("architectures/falcon_h1", torch.bfloat16,
               dict(r=4, lora_alpha=8,
                    target_modules=["in_proj", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "down_proj"])),
    "ends": ("tiny-llama", torch.float32,
             dict(r=6, lora_alpha=9, target_modules=["embed_tokens", "lm_head", "v_proj"],
                  rank_pattern={"lm_head": 3})),
    "scaled-ends": ("architectures/gemma2", torch.bfloat16,
                    dict(r=4, lora_alpha=8, use_rslora=True, target_modules=["embed_tokens", "lm_head"])),
    "tied-ends": ("architectures/gemma2", torch.float32,
                  dict(r=4, lora_alpha=8, target_modules=["embed_tokens"], ensure_weight_tying=True)),
    # PEFT ties no embedding of this name.
    "look-up": ("architectures/gpt2", torch.float32,
                dict(r=4, lora_alpha=8, target_modules=["wte"], ensure_weight_tying=True)),
    "whole-ends": ("tiny-llama", torch.float32,
                   dict(r=4, lora_alpha=8, target_modules=["q_proj", "up_proj"],
                        modules_to_save=["embed_tokens", "lm_head"])),
    "whole-scaled-ends": ("architectures/gemma2", torch.bfloat16,
                          dict(r=4, lora_alpha=8, target_modules=["q_proj"],
                               modules_to_save=["embed_tokens", "lm_head"])),
    "whole-tied": ("architectures/gemma2", torch.float32,
                   dict(r=4, lora_alpha=8, target_modules=["q_proj"], modules_to_save=["embed_tokens"],
                        ensure_weight_tying=True)),
    "whole-table": ("architectures/gpt2", torch.float32,
                    dict(r=4, lora_alpha=8, target_modules=["c_attn"], modules_to_save=["wte"],
                         fan_in_fan_out=True)),
    # A vocabulary that was cut to its tokens.
    "fewer-rows": ("tiny-llama", torch.float32,
                   dict(r=4, lora_alpha=8, target_modules=["v_proj"],
                        modules_to_save=["embed_tokens", "lm_head"])),
    # One that was enlarged: rows of its own, of pairs, and of a head that is tied to the embedding.
    "more-rows": ("tiny-llama", torch.float32,
                  dict(r=4, lora_alpha=8, target_modules=["v_proj"],
                       modules_to_save=["embed_tokens", "lm_head"])),
    "more-ends": ("tiny-llama", torch.float32,
                  dict(r=4, lora_alpha=8, target_modules=["embed_tokens", "lm_head", "q_proj"])),
    "more-tied": ("architectures/gemma3", torch.float32,
                  dict(r=4, lora_alpha=8, target_modules=["q_proj"], modules_to_save=["embed_tokens"],
                       ensure_weight_tying=True)),
    "tokens": ("tiny-llama", torch.float32,
               dict(r=4, lora_alpha=8, target_modules=["q_proj"], trainable_token_indices=[7, 250, 3, 100])),
    "tokens-apart": ("tiny-llama", torch.bfloat16,
                     dict(r=4, lora_alpha=8, target_modules=["v_proj"],
                          trainable_token_indices={"embed_tokens": [7, 3], "lm_head": [9, 11, 450]})),
    "tied-tokens": ("architectures/gemma2", torch.float32,
                    dict(r=4, lora_alpha=8, target_modules=["q_proj"], trainable_token_indices=[4, 90, 17])),
    "fewer-tokens": ("tiny-llama", torch.float32,
                     dict(r=4, lora_alpha=8, target_modules=["q_proj"], trainable_token_indices=[7, 500, 3])),
    "dora": ("tiny-llama", torch.float32,
             dict(r=6, lora_alpha=9, use_dora=True, target_modules=SEVEN, rank_pattern={"k_proj": 3})),
    "dora-biased": ("architectures/qwen2", torch.bfloat16,
                    dict(r=4, lora_alpha=8, use_dora=True, target_modules=["q_proj", "v_proj", "o_proj", "up_proj"])),
    "dora-transposed": ("architectures/gpt2", torch.float32,
                        dict(r=4, lora_alpha=8, use_dora=True, target_modules=["c_attn", "c_proj", "c_fc"],
                             fan_in_fan_out=True)),
    "dora-scaled": ("architectures/falcon_h1", torch.float32,
                    dict(r=4, lora_alpha=8, use_dora=True, target_modules=["q_proj", "o_proj", "gate_proj", "down_proj"])),
    "activated": ("tiny-llama", torch.float32,
                  dict(r=4, lora_alpha=8, target_modules=SEVEN, alora_invocation_tokens=[5, 6, 7])),
}
ROWS = {"fewer-rows": 501, "fewer-tokens": 501, "more-rows": 530, "more-ends": 517, "more-tied": 261}  # of the vocabulary, where it is not the model's


def fill(model, scale, generator):
    """PEFT begins with b = 0, which changes nothing."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_magnitude" in name:
                weight.mul_(1 + 0.3 * torch.randn(weight.shape, generator=generator))
            elif "lora_" in name:
                weight.copy_(torch.randn(weight.shape, generator=generator) * scale)
            elif "modules_to_save" in name or "trainable_tokens" in name:
                weight.add_(torch.randn(weight.shape, generator=generator) * weight.std())


def put_tokens(fields, ids):
    """The tokens that a case is about stand in its prompt, an invocation twice: the last counts."""
    invocation = fields.get("alora_invocation_tokens")
    for at in (9, 40) if invocation else ():
        ids[0, at:at + len(invocation)] = torch.tensor(invocation)
    trained = fields.get("trainable_token_indices") or []
    for at, token in enumerate(trained if isinstance(trained, list) else trained["embed_tokens"]):
        ids[0, 2 + 5 * at] = token


def write_case(name, folder, dtype, fields):
    out = GOLDEN / "lora" / name
    shutil.rmtree(out, ignore_errors=True)
    generator = torch.Generator().manual_seed(7)
    base = AutoModelForCausalLM.from_pretrained(
        GOLDEN / folder, torch_dtype=torch.float32, attn_implementation="eager")
    short = folder.startswith("architectures/") and name != "fused"
    ids = torch.randint(3, min(250, base.config.vocab_size), (1, SHORT if short else LENGTH),
                        generator=generator)
    put_tokens(fields, ids)
    vocab = base.config.vocab_size
    for at, token in enumerate(range(vocab, ROWS.get(name, 0))):
        ids[0, (3 + 4 * at) % ids.shape[1]] = token
    with torch.no_grad():
        # Ids that a model has not are its first one.
        plain = base(torch.where(ids < vocab, ids, 0)).logits[0]
    if name in ROWS:
        base.resize_token_embeddings(ROWS[name])
    model = get_peft_model(base, LoraConfig(bias="none", task_type="CAUSAL_LM", **fields)).eval()
    fill(model, 0.12, generator)
    model.save_pretrained(out)
    weights = {key: value.to(dtype) for key, value in
               load_file(out / "adapter_model.safetensors").items()}
    save_file(weights, out / "adapter_model.safetensors", metadata={"format": "pt"})
    # What the file holds is what counts, in its own type.
    with torch.no_grad():
        for key, weight in model.named_parameters():
            file_key = key.replace("modules_to_save.default.", "").replace(".default", "")
            file_key = file_key.replace("lora_magnitude_vector.weight", "lora_magnitude_vector")
            is_saved = any(part in key for part in ("lora_", "modules_to_save", "trainable_tokens"))
            if is_saved and file_key in weights:
                weight.copy_(weights[file_key].float())
        logits = model(ids).logits[0]
    config = json.loads((out / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = folder
    (out / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (out / "README.md").unlink(missing_ok=True)
    save_file({"ids": ids[0].to(torch.int64), "logits": logits.float().contiguous(),
               "base": plain.float().contiguous()}, out / "golden.safetensors")
    both = min(plain.shape[1], logits.shape[1])
    same = plain[:, :both]
    print(name, "moves logits by", (logits[:, :both] - same).abs().mean().item(), "of",
          same.abs().mean().item())


for case, (model_folder, file_type, lora) in CASES.items():
    if len(sys.argv) < 2 or case in sys.argv[1:]:
        write_case(case, model_folder, file_type, lora)
