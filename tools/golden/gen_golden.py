"""Makes the golden files of tests/golden/ with Hugging Face transformers on a CPU.

    python3 tools/golden/gen_golden.py tiny-llama     # also writes the tiny model itself
    python3 tools/golden/gen_golden.py foretoken-7m
    python3 tools/golden/gen_golden.py architectures  # tiny models too; a few minutes
    python3 tools/golden/gen_golden.py architectures --only gemma2

Needs torch, transformers and safetensors. tests/golden/README.md describes the output.
"""

import argparse
import inspect
import json
import pathlib
import shutil
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

import architectures

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
SEED = 20261121
PROMPT_SEED = 32  # of the seeds below 40 the one whose greedy texts stay farthest from ties
GREEDY_TOKENS = 256
LENGTH_DEPENDENT = ("dynamic", "longrope")  # rotary embeddings that a forward's length changes

TINY = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512,
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512,
    "rope_theta": 10000.0, "rope_scaling": None, "rms_norm_eps": 1e-5, "hidden_act": "silu",
    "attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False,
    "tie_word_embeddings": False, "use_cache": True, "initializer_range": 0.02,
    "bos_token_id": None, "eos_token_id": None, "dtype": "float32", "torch_dtype": "float32",
}

TEXTS = [
    "Once upon a time, there was a little",
    "<|user|>Tell me a story about a little duck.<|end|><|assistant|>",
    "Mia had a red kite. The red kite could fly very high. Mia ran up the hill with the red kite, "
    "and the wind took the red kite up, up, up. \"Look!\" said her brother Sam. \"The red kite is "
    "as high as the birds!\" Then the string broke. The red kite flew over the river and over the "
    "old mill, and Mia began to cry. Sam said, \"Do not cry, Mia. We will look for the red kite.\" "
    "They walked over the bridge. They asked the miller, but the miller had not seen the red kite. "
    "They asked the old woman with the white goat, but the old woman had not seen the red kite. "
    "At last they came to a tall tree. High up in the tree sat a black crow, and next to the crow",
]

TOKENIZER_TEXTS = TEXTS + [
    "", " ", "\n\n", "  two  spaces", "tabs\tand\r\nline ends", "I'm, you're, we'll, they'd've",
    "1234567 + 8.90 = x_1^2", "def f(a, b):\n    return a * b  # café", "naïve Ærøskøbing ŋ ç",
    "日本語のテキスト", "🙂👩‍👩‍👧 emoji", "<|endoftext|>Hi<|end|>", "<|user|", "a<|end|>b <|end|> c",
    "\u0000\u007f\u00ad", "ALL CAPS AND MiXeD", "...!!!???", "word" * 20,
]

CHATS = [
    [{"role": "user", "content": "Hello!"}],
    [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi\nthere"}],
    [{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two "},
     {"role": "user", "content": " Three"}],
]


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def write_tiny(folder):
    """Random weights, wide enough that logits have a standard deviation of several units."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**TINY))
    weights = {}
    for name, weight in model.state_dict().items():
        if weight.dim() == 1:
            weights[name] = torch.rand_like(weight) + 0.5
        elif "embed_tokens" in name:
            weights[name] = torch.randn_like(weight)
        else:
            scale = 4.0 if "lm_head" in name else 0.8
            weights[name] = torch.randn_like(weight) * scale * weight.shape[1] ** -0.5
    names = sorted(weights)
    shards = [names[:len(names) // 2], names[len(names) // 2:]]
    index = {"metadata": {"total_size": sum(4 * weight.numel() for weight in weights.values())},
             "weight_map": {}}
    for i, shard in enumerate(shards, start=1):
        file = f"model-{i:05}-of-{len(shards):05}.safetensors"
        save_file({name: weights[name].contiguous() for name in shard}, folder / file,
                  metadata={"format": "pt"})
        index["weight_map"].update({name: file for name in shard})
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    (folder / "config.json").write_text(json.dumps(TINY, indent=2) + "\n")


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float()


def greedy(model, ids):
    """Continues with a KV cache, then checks every choice by one forward over the whole text."""
    tokens, past, current = list(ids), None, torch.tensor([ids])
    known = inspect.signature(model.forward).parameters
    name = "cache" if "cache" in known else "past_key_values"
    has_positions = name == "cache" and "position_ids" in known
    with torch.no_grad():
        for _ in range(GREEDY_TOKENS):
            # Caches whose first layer attends to nothing know no length.
            first = len(tokens) - current.shape[1]
            positions = {"position_ids": torch.arange(first, len(tokens))[None]} if has_positions else {}
            output = model(current, **{name: past}, **positions, use_cache=True)
            past, current = getattr(output, name), output.logits[:, -1:].argmax(-1)
            tokens.append(current.item())
    scores = logits_of(model, tokens[:-1])[len(ids) - 1:]
    assert scores.argmax(-1).tolist() == tokens[len(ids):], "cached and full forward disagree"
    top = scores.topk(2).values
    return tokens[len(ids):], [round(gap, 5) for gap in (top[:, 0] - top[:, 1]).tolist()]


def load(folder, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()


def error_against(reference, other):
    difference = (reference - other).abs()
    agree = (reference.argmax(-1) == other.argmax(-1)).float().mean()
    return {"max_abs": difference.max().item(), "mean_abs": difference.mean().item(),
            "same_top1": agree.item(), "logit_std": reference.std().item()}


def cases_of(model, prompts, keep, suffix, tensors):
    cases = []
    for i, ids in enumerate(prompts):
        positions = list(range(len(ids)))[-keep:] if keep else list(range(len(ids)))
        tensors[f"prompt{i}.logits.{suffix}"] = logits_of(model, ids)[positions].contiguous()
        tokens, gaps = greedy(model, ids)
        cases.append({"ids": ids, "positions": positions, "greedy": tokens, "greedy_gaps": gaps})
    return cases


def generate(name, folder, prompts, keep):
    """`keep` last positions of every prompt are stored; 0 stores all."""
    tensors, result = {}, {"model": name, "torch": torch.__version__, "seed": SEED,
                           "transformers": transformers.__version__}
    full = load(folder, torch.float32)
    stored_bf16 = json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
    if not stored_bf16:
        result["fp32"] = cases_of(full, prompts, keep, "fp32", tensors)
    rounded = load(folder, torch.bfloat16)
    half = [logits_of(rounded, ids) for ids in prompts]
    rounded = rounded.float()
    result["bf16_weights"] = cases_of(rounded, prompts, keep, "bf16_weights", tensors)
    result["hugging_face_bf16_error"] = [
        error_against(logits_of(rounded, ids), other) for ids, other in zip(prompts, half)]
    return result, tensors


def tokenizer_cases(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False)
    return {"tokenizer": [{"text": text, "ids": encode(text),
                           "decoded": tokenizer.decode(encode(text))} for text in TOKENIZER_TEXTS],
            "chat": [{"messages": chat, "add_generation_prompt": prompt,
                      "text": tokenizer.apply_chat_template(chat, tokenize=False,
                                                            add_generation_prompt=prompt)}
                     for chat in CHATS for prompt in (True, False)]}


def write_architecture(name, folder):
    """A random model whose weights are exact in bf16, under the names that its checkpoints have."""
    config = architectures.MODELS[name]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    torch.manual_seed(SEED + list(architectures.MODELS).index(name))
    model = getattr(transformers, config["architectures"][0])(
        transformers.AutoConfig.from_pretrained(folder))
    weights = {}
    for key, weight in model.state_dict().items():
        if key == "lm_head.weight" and model.config.get_text_config().tie_word_embeddings:
            continue
        if "text_config" in config:
            key = key.replace("model.language_model.", "language_model.model.")
            key = key.removeprefix("model.") if "language_model" not in key else key
        weights[key] = architectures.random_weight(key, weight, config).to(torch.bfloat16)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def rope_type(changes):
    return (changes.get("rope_scaling") or {}).get("rope_type")


def load_variant(folder, changes, max_model_len):
    """The model in fp32 with `changes` to its config and rotary embeddings for max_model_len."""
    config = json.loads((folder / "config.json").read_text())
    with tempfile.TemporaryDirectory() as changed:
        (pathlib.Path(changed) / "config.json").write_text(json.dumps({**config, **changes}))
        shutil.copy(folder / "model.safetensors", changed)
        model, info = getattr(transformers, config["architectures"][0]).from_pretrained(
            changed, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    rotary = [module for module in model.modules() if hasattr(module, "rope_type")]
    for module in rotary:
        if module.rope_type not in LENGTH_DEPENDENT:
            continue
        init = ROPE_INIT_FUNCTIONS[module.rope_type]
        module.inv_freq.copy_(init(module.config, seq_len=max_model_len)[0])
        module.rope_type = "default"  # no update by the length of a forward
    return model.eval()


def check_fixed_rope(model, folder, changes, max_model_len, ids):
    """A forward that is filled up to max_model_len turns by itself as the fixed one does."""
    original = load_variant(folder, changes, 0)
    for module in original.modules():
        if hasattr(module, "rope_type"):
            module.rope_type = rope_type(changes)
    filled = ids + [7] * (max_model_len - len(ids))
    difference = logits_of(original, filled)[:len(ids)] - logits_of(model, ids)
    assert difference.abs().max() < 1e-4, difference.abs().max()


def best_prompt(model, length, vocab=250):
    """A random prompt whose greedy text varies and stays far from ties."""
    best = None
    for seed in range(16):
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(2, vocab, (length,), generator=generator).tolist()
        tokens, gaps = greedy(model, ids)
        rank = min(len(set(tokens)), 8), min(gaps)
        if best is None or rank > best[0]:
            best = rank, ids, tokens
        if best[0] > (8, 2e-3):
            break
    return best[1], best[2], best[0][1]


def generate_architecture(name):
    folder = GOLDEN / "architectures" / name
    write_architecture(name, folder)
    result, tensors = {"transformers": transformers.__version__, "torch": torch.__version__,
                       "variants": []}, {}
    for variant, (changes, max_model_len) in architectures.VARIANTS[name].items():
        model = load_variant(folder, changes, max_model_len)
        cases = []
        for i, (length, keep) in enumerate(((4, 4), (70, 8))):
            ids, tokens, gap = best_prompt(model, length)
            logits = logits_of(model, ids)
            if rope_type(changes) in LENGTH_DEPENDENT:
                check_fixed_rope(model, folder, changes, max_model_len, ids)
            tensors[f"{variant}.prompt{i}.logits.fp32"] = logits[-keep:].contiguous()
            cases.append({"ids": ids, "positions": list(range(length))[-keep:], "greedy": tokens,
                          "smallest_gap": gap})
            print(name, variant, length, "gap", gap, "distinct", len(set(tokens)),
                  "std", round(logits.std().item(), 2))
        result["variants"].append({"name": variant, "hf_overrides": changes,
                                   "max_model_len": max_model_len, "fp32": cases})
    write_json(folder / "golden.json", result)
    save_file(tensors, folder / "golden.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=["tiny-llama", "foretoken-7m", "architectures"])
    parser.add_argument("--only", choices=list(architectures.MODELS), help="one architecture")
    arguments = parser.parse_args()
    name = arguments.model
    torch.set_num_threads(1)
    if name == "architectures":
        for architecture in [arguments.only] if arguments.only else architectures.MODELS:
            generate_architecture(architecture)
        return
    out = GOLDEN / name
    out.mkdir(parents=True, exist_ok=True)
    if name == "tiny-llama":
        write_tiny(out)
        generator = torch.Generator().manual_seed(PROMPT_SEED)
        prompts = [torch.randint(0, TINY["vocab_size"], (length,), generator=generator).tolist()
                   for length in (1, 17, 40)]
        result, tensors = generate(name, out, prompts, keep=0)
    else:
        folder = ROOT / "models" / name
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        prompts = [tokenizer.encode(text, add_special_tokens=False) for text in TEXTS]
        result, tensors = generate(name, folder, prompts, keep=4)
        write_json(out / "text.json", tokenizer_cases(folder))
    write_json(out / "golden.json", result)
    save_file(tensors, out / "golden.safetensors")
    for kind in ("fp32", "bf16_weights"):
        for case in result.get(kind, []):
            print(kind, len(case["ids"]), "->", case["greedy"][:12], "smallest gap",
                  min(case["greedy_gaps"]), "distinct", len(set(case["greedy"])))
    print(json.dumps(result["hugging_face_bf16_error"], indent=1))


if __name__ == "__main__":
    main()
