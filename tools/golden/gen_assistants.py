"""Makes tests/golden/assistants/: tiny random assistants of Gemma 4, and what Hugging Face transformers drafts with them.

    python3 tools/golden/gen_assistants.py

The targets are those of tests/golden/architectures. Needs torch, transformers of 5.10 or later, safetensors and numpy.
tests/golden/assistants/README.md describes the output.
"""

import json
import pathlib

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers.generation.candidate_generator import SinglePositionMultiTokenCandidateGenerator

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = ROOT / "tests" / "golden" / "architectures"
OUT = ROOT / "tests" / "golden" / "assistants"
SEED, STEPS, FIRST, DRAFTS = 20261130, 64, 3, 4
CLASSES = {"gemma4_assistant": "Gemma4Assistant", "gemma4_unified_assistant": "Gemma4UnifiedAssistant"}
ORDERED = {"use_ordered_embeddings": True, "num_centroids": 16, "centroid_intermediate_top_k": 3}
# The target of each, the kinds of its layers, and what else its config.json says.
ASSISTANTS = {
    # The target's last layers read the keys and values of earlier ones, which the assistant reads too.
    "dense": ("gemma4-deep", ["sliding_attention", "sliding_attention", "full_attention"], {}),
    # Logits of the ids of 3 of 16 clusters; keys are values, and layers without a window have one head of them.
    "ordered": ("gemma4-large", ["sliding_attention", "full_attention"], ORDERED),
    "unified": ("gemma4-unified", ["sliding_attention", "full_attention"], {"model_type": "gemma4_unified_assistant"}),
}
OF_TARGET = ("vocab_size", "head_dim", "global_head_dim", "num_key_value_heads", "num_global_key_value_heads",
             "attention_k_eq_v", "sliding_window", "rope_parameters", "rms_norm_eps", "max_position_embeddings",
             "hidden_activation", "bos_token_id", "eos_token_id", "pad_token_id")


def config_of(name):
    target_name, layers, more = ASSISTANTS[name]
    target = json.loads((TARGETS / target_name / "config.json").read_text())
    kind = more.get("model_type", "gemma4_assistant")
    text = {key: target[key] for key in OF_TARGET if key in target}
    text |= {"model_type": "gemma4_unified_text" if "unified" in kind else "gemma4_text", "hidden_size": 48,
             "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": len(layers),
             "num_kv_shared_layers": len(layers), "layer_types": layers, "tie_word_embeddings": True,
             "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, "enable_moe_block": False,
             "use_double_wide_mlp": False}
    return {"architectures": [CLASSES[kind] + "ForCausalLM"], "model_type": kind, "dtype": "bfloat16",
            "backbone_hidden_size": target["hidden_size"], "tie_word_embeddings": True, "text_config": text, **more}


def fill(model, generator):
    """Random numbers that are exact in bf16, in the place of the model's own."""
    stored = {}
    for key, tensor in model.state_dict().items():
        noise = torch.from_numpy(generator.standard_normal(tuple(tensor.shape))).float()
        if key.endswith("token_ordering"):
            stored[key] = torch.from_numpy(generator.permutation(tensor.numel()))
        elif key.endswith("layer_scalar"):
            stored[key] = (0.8 + 0.1 * noise).to(torch.bfloat16)
        elif tensor.ndim == 1:
            stored[key] = (1 + 0.3 * noise).to(torch.bfloat16)
        else:
            stored[key] = (1.6 * noise / tensor.shape[-1] ** 0.5).to(torch.bfloat16)
    stored.pop("lm_head.weight", None)
    for key in [key for key in stored if "inv_freq" in key or key.endswith("embed_scale")]:
        stored.pop(key)
    model.load_state_dict({key: value if key.endswith("token_ordering") else value.float()
                           for key, value in stored.items()}, strict=False)
    return stored


def make_assistant(config):
    """The class of transformers. It counts the window as a distance, which would be one position more than the target keeps."""
    text = {**config["text_config"], "sliding_window": config["text_config"]["sliding_window"] - 1}
    classes = CLASSES[config["model_type"]]
    own = getattr(transformers, classes + "Config")(**{**config, "text_config": text})
    own._attn_implementation = "eager"
    return getattr(transformers, classes + "ForCausalLM")(own).float().eval()


def drafts_behind(target, assistant, ids, gaps):
    """What transformers drafts behind `ids`, of which the target has computed all but the last."""
    with torch.no_grad():
        outputs = target(torch.tensor([ids[:-1]]), use_cache=True, output_hidden_states=True, return_shared_kv_states=True)
    generation = transformers.GenerationConfig(max_length=4096, min_length=0, do_sample=False)
    assistant.generation_config.num_assistant_tokens = DRAFTS
    known = torch.tensor([ids])
    maker = SinglePositionMultiTokenCandidateGenerator(
        input_ids=known, assistant_model=assistant, target_model_input_embeddings=target.get_input_embeddings(),
        generation_config=generation, model_kwargs={"attention_mask": torch.ones_like(known)})
    candidates, logits = maker.get_candidates(
        known, model_kwargs={"attention_mask": torch.ones_like(known)}, model_outputs=outputs, is_first_iteration=False,
        n_last_matches=len(ids) - 2)
    best = torch.sort(logits[0], dim=-1).values[:, -2:]
    gaps.append(float((best[:, 1] - best[:, 0]).min()))
    return candidates[0, len(ids):].tolist()


def generate(name, ids, generator):
    """An assistant whose drafts vary and stay far from ties; the first such draw of the generator."""
    config = config_of(name)
    target = transformers.AutoModelForCausalLM.from_pretrained(
        TARGETS / ASSISTANTS[name][0], dtype=torch.float32, attn_implementation="eager").eval()
    while True:
        assistant = make_assistant(config)
        stored, gaps = fill(assistant, generator), []
        drafts = [drafts_behind(target, assistant, ids[:length], gaps) for length in range(FIRST, FIRST + STEPS)]
        different = len({token for each in drafts for token in each})
        print(name, "smallest gap", min(gaps), "different drafts", different, flush=True)
        if min(gaps) > 5e-4 and different >= 20:
            break
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file({key: value.contiguous() for key, value in stored.items()}, folder / "model.safetensors",
              metadata={"format": "pt"})
    return {"name": name, "target": "architectures/" + ASSISTANTS[name][0], "drafts": drafts, "gap": min(gaps)}


def main():
    torch.set_num_threads(1)
    generator = np.random.default_rng(SEED)
    ids = generator.integers(2, 126, FIRST + STEPS).tolist()
    assistants = [generate(name, ids, generator) for name in ASSISTANTS]
    (OUT / "golden.json").write_text(json.dumps(
        {"transformers": transformers.__version__, "seed": SEED, "ids": ids, "first": FIRST, "assistants": assistants},
        separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
