"""The tiny random models of tests/golden/architectures and what is asked of each.

A variant is a set of changes to the model's config.json, given to Foretoken as hf_overrides, and the
max_model_len that fixes rotary embeddings which depend on the length.
"""

import torch

COMMON = {
    "vocab_size": 256, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
    "rope_theta": 10000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu", "attention_dropout": 0.0,
    "tie_word_embeddings": False, "initializer_range": 0.02, "bos_token_id": None,
    "eos_token_id": None, "pad_token_id": None, "torch_dtype": "bfloat16",
}
GEMMA = {
    "head_dim": 16, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 60,
    "sliding_window": 24, "tie_word_embeddings": True, "attention_bias": False,
}


def model(name, kind, **changes):
    return {**COMMON, "architectures": [name], "model_type": kind, **changes}


GEMMA3_TEXT = {"rope_theta": 1000000.0, "rope_local_base_freq": 1000.0, "sliding_window_pattern": 3,
               "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
GEMMA3_VISION = {
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
    "text_config": {key: value for key, value in
                    model("", "gemma3_text", **GEMMA, **{**GEMMA3_TEXT, "num_hidden_layers": 2,
                                                         "sliding_window_pattern": 2}).items()
                    if key not in ("architectures", "torch_dtype", "tie_word_embeddings")},
    "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 8, "image_size": 8,
                      "intermediate_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1,
                      "patch_size": 4, "vision_use_head": False},
    "mm_tokens_per_image": 4, "boi_token_index": 253, "eoi_token_index": 254,
    "image_token_index": 255, "eos_token_id": [1, 106], "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}

MODELS = {
    "llama": model("LlamaForCausalLM", "llama", head_dim=16),
    "mistral": model("MistralForCausalLM", "mistral", head_dim=16, sliding_window=24),
    "qwen2": model("Qwen2ForCausalLM", "qwen2", use_sliding_window=False, sliding_window=20,
                   max_window_layers=1),
    "qwen3": model("Qwen3ForCausalLM", "qwen3", head_dim=16, use_sliding_window=False,
                   sliding_window=None, max_window_layers=3, attention_bias=False),
    "gemma2": model("Gemma2ForCausalLM", "gemma2", **GEMMA, num_hidden_layers=2, attn_logit_softcapping=3.0,
                    final_logit_softcapping=8.0),
    "gemma3": model("Gemma3ForCausalLM", "gemma3_text", **{**GEMMA, **GEMMA3_TEXT}),
    "gemma3-vision": GEMMA3_VISION,
    "phi3": model("Phi3ForCausalLM", "phi3", num_attention_heads=2, num_key_value_heads=1,
                  rope_scaling=None, sliding_window=None, original_max_position_embeddings=512),
    "smollm3": model("SmolLM3ForCausalLM", "smollm3", head_dim=16, attention_bias=True,
                     mlp_bias=True, no_rope_layers=[1, 0, 1], no_rope_layer_interval=4,
                     use_sliding_window=False, sliding_window=None, tie_word_embeddings=True),
}


def rope(kind, **fields):
    return {"rope_scaling": {"rope_type": kind, **fields}}


def longrope(dims, **fields):
    return rope("longrope", short_factor=[1 + 0.1 * i for i in range(dims)],
                long_factor=[1 + 1.5 * i for i in range(dims)], **fields)


# Model -> variant -> (changes, max_model_len).
LENGTH = 336
VARIANTS = {
    "llama": {
        "default": ({}, LENGTH),
        "gelu": ({"hidden_act": "gelu"}, LENGTH),
        "linear": ({**rope("linear", factor=4.0), "max_position_embeddings": 128}, LENGTH),
        "dynamic": ({**rope("dynamic", factor=6.0), "max_position_embeddings": 64}, LENGTH),
        "llama3": (rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                        original_max_position_embeddings=64), LENGTH),
        "yarn": (rope("yarn", factor=8.0, original_max_position_embeddings=64), LENGTH),
        "yarn-mscale": (rope("yarn", factor=8.0, original_max_position_embeddings=64, mscale=0.7,
                             mscale_all_dim=1.3, beta_fast=8, beta_slow=2, truncate=False), LENGTH),
        "yarn-attention-factor": (rope("yarn", factor=8.0, original_max_position_embeddings=64,
                                       attention_factor=0.8), LENGTH),
    },
    "mistral": {"window": ({}, LENGTH), "full": ({"sliding_window": None}, LENGTH)},
    "qwen2": {"full": ({}, LENGTH), "window": ({"use_sliding_window": True}, LENGTH)},
    "qwen3": {
        "default": ({}, LENGTH),
        "layer-types": ({"use_sliding_window": True, "sliding_window": 20, "layer_types": [
            "full_attention", "sliding_attention", "full_attention"]}, LENGTH),
    },
    "gemma2": {"default": ({}, LENGTH)},
    "gemma3": {
        "default": ({}, LENGTH),
        "rope-parameters": ({"rope_scaling": None, "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 50000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}}}, LENGTH),
    },
    "gemma3-vision": {"default": ({}, LENGTH)},
    "phi3": {
        "full": ({}, LENGTH),
        "partial": ({"partial_rotary_factor": 0.5}, LENGTH),
        "window": ({"sliding_window": 24}, LENGTH),
        "longrope-short": ({**longrope(8), "original_max_position_embeddings": LENGTH,
                            "max_position_embeddings": 4 * LENGTH}, LENGTH),
        "longrope-long": ({**longrope(8), "original_max_position_embeddings": 64}, LENGTH),
        "longrope-partial": ({**longrope(6), "original_max_position_embeddings": 64,
                              "partial_rotary_factor": 0.75}, LENGTH),
    },
    "smollm3": {"default": ({}, LENGTH)},
}


def random_weight(name, weight, config):
    """Wide enough that logits vary by several units and that every layer matters. Where the output
    matrix is the embedding, layers must outweigh it, or each token would only repeat itself."""
    text = config.get("text_config", config)
    gemma = config["model_type"].startswith("gemma")
    tied = text.get("tie_word_embeddings", gemma)
    if name.endswith(".bias"):
        return torch.randn_like(weight) * 0.3
    if weight.dim() == 1:
        center = 0.0 if gemma else 1.0
        if tied and name.endswith("model.norm.weight"):
            center += 2.0
        if gemma and ("post_attention" in name or "post_feedforward" in name):
            center += 2.0
        return torch.rand_like(weight) - 0.5 + center
    if "embed_tokens" in name:
        return torch.randn_like(weight) * (0.25 if tied else 1.0)
    scale = 4.0 if "lm_head" in name else 1.0
    if gemma and ("q_proj" in name or "k_proj" in name):
        scale = 0.7
    if tied and not gemma and ("o_proj" in name or "down_proj" in name):
        scale = 3.0
    return torch.randn_like(weight) * scale * weight[0].numel() ** -0.5
