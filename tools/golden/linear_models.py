"""The tiny random models with linear attention, beside those of recurrent.py."""

import families
import mixtures

DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16,
         "linear_value_head_dim": 24, "linear_conv_kernel_dim": 4, "full_attention_interval": 2, "num_hidden_layers": 2,
         "attention_bias": False}
EXPERTS = {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "num_experts": 4,
           "num_experts_per_tok": 2}
ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
                            "mrope_section": [2, 1, 1], "mrope_interleaved": True}}
TYPES = {"layer_types": ["linear_attention", "full_attention"]}
VISION = {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 64, "patch_size": 4,
          "spatial_merge_size": 2, "temporal_patch_size": 1, "num_position_embeddings": 16,
          "deepstack_visual_indexes": []}
MODULE = {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False}


def qwen3_5(name, kind, **changes):
    text = families.inner(f"{kind}_text", hidden_size=64, head_dim=16, attn_output_gate=True,
                          **{**DELTA, **TYPES, **ROPE, **changes})
    return families.around(name, kind, text, vision_config=VISION)


MODELS = {
    "qwen3_next": mixtures.mixture("Qwen3NextForCausalLM", "qwen3_next", partial_rotary_factor=0.25,
                                   decoder_sparse_step=1, mlp_only_layers=[0], norm_topk_prob=True, **EXPERTS,
                                   **DELTA),
    "qwen3_5": qwen3_5("Qwen3_5ForConditionalGeneration", "qwen3_5", intermediate_size=64, **MODULE),
    "qwen3_5_moe": qwen3_5("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", **EXPERTS, **MODULE,
                           intermediate_size=32),
    "olmo_hybrid": mixtures.mixture("OlmoHybridForCausalLM", "olmo_hybrid", without=["rope_theta", "head_dim"],
                                    **{key: value for key, value in DELTA.items() if "interval" not in key},
                                    linear_allow_neg_eigval=True, **TYPES),
    "kimi_linear": mixtures.mixture("KimiLinearForCausalLM", "kimi_linear",
                                    without=["head_dim", "max_position_embeddings", "hidden_act"],
                                    model_max_length=512, num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=32,
                                    qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, mla_use_nope=True,
                                    num_experts=4, num_experts_per_token=2, num_shared_experts=1,
                                    moe_intermediate_size=32, moe_renormalize=True, num_expert_group=1, topk_group=1,
                                    moe_router_activation_func="sigmoid", routed_scaling_factor=2.446,
                                    first_k_dense_replace=1, moe_layer_freq=1, use_grouped_topk=True,
                                    linear_attn_config={"full_attn_layers": [2], "kda_layers": [1], "head_dim": 16,
                                                        "num_heads": 4, "short_conv_kernel_size": 4}),
    "minimax": mixtures.mixture("MiniMaxForCausalLM", "minimax", num_local_experts=4, num_experts_per_tok=2,
                                intermediate_size=32, num_hidden_layers=3, block_size=16,
                                sliding_window=None, router_jitter_noise=0.0,
                                layer_types=["linear_attention", "full_attention", "linear_attention"],
                                full_attn_alpha_factor=1.8, full_attn_beta_factor=0.9, linear_attn_alpha_factor=1.6,
                                linear_attn_beta_factor=0.8, mlp_alpha_factor=1.7, mlp_beta_factor=1.1),
}
