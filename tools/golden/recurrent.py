"""The tiny random models of families some of whose layers keep a state of each sequence: short convolutions and
state spaces. Names and fields are those of published checkpoints.
"""

import torch

import families
import linear_models
import mixtures

LENGTH = families.LENGTH
ROUNDING = 9e-3  # as of gen_mixtures.py; of what is computed in bf16 here, the engine has most in float
BAILING = ()


def recurrent(name, kind, without=(), **changes):
    left_out = [*without] if "head_dim" in changes else ["head_dim", *without]
    return mixtures.mixture(name, kind, without=left_out, **changes)


# Most fields of LFM's files have names of their own.
NOT_LFM = ["rms_norm_eps", "hidden_act", "attention_dropout"]
MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
         "mamba_chunk_size": 16, "mamba_conv_bias": True, "mamba_proj_bias": False}
GRANITE = {"attention_bias": False, "embedding_multiplier": 3.0, "logits_scaling": 2.0, "residual_multiplier": 0.7,
           "attention_multiplier": 0.2}
NEMOTRON = {"mlp_hidden_act": "relu2", "mamba_num_heads": 4, "mamba_head_dim": 32, "n_groups": 2, "ssm_state_size": 16,
            "conv_kernel": 4, "expand": 2, "chunk_size": 16, "use_conv_bias": True, "mamba_proj_bias": False,
            "use_bias": False, "mlp_bias": False, "attention_bias": False, "layer_norm_epsilon": 1e-5, "head_dim": 16,
            "mamba_hidden_act": "silu", "residual_in_fp32": False, "time_step_min": 0.001, "time_step_max": 0.1,
            "time_step_floor": 0.0001}

JAMBA = {"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 8, "mamba_conv_bias": True,
         "mamba_proj_bias": False, "use_mamba_kernels": False, "attn_layer_period": 3, "attn_layer_offset": 1,
         "expert_layer_period": 2, "expert_layer_offset": 1, "num_hidden_layers": 3, "num_experts_per_tok": 2}
MAMBA_1 = {"state_size": 16, "conv_kernel": 4, "expand": 2, "time_step_rank": 8, "use_bias": False,
           "use_conv_bias": True, "layer_norm_epsilon": 1e-5, "residual_in_fp32": True, "num_hidden_layers": 2,
           "intermediate_size": 128}
NOT_MAMBA_1 = ["num_attention_heads", "num_key_value_heads", "rope_theta", "max_position_embeddings", "rms_norm_eps",
               "attention_dropout"]

MODELS = {
    "lfm2": recurrent("Lfm2ForCausalLM", "lfm2", without=[*NOT_LFM, "intermediate_size"], num_hidden_layers=3,
                      norm_eps=1e-5, block_ff_dim=96, block_multiple_of=16, block_ffn_dim_multiplier=1.0,
                      block_auto_adjust_ff_dim=True, conv_L_cache=3, conv_bias=False, rope_theta=1000000.0,
                      layer_types=["conv", "full_attention", "conv"], tie_embedding=False, hidden_size=32),
    "lfm2_moe": recurrent("Lfm2MoeForCausalLM", "lfm2_moe", without=NOT_LFM, norm_eps=1e-5,
                          moe_intermediate_size=32, num_dense_layers=1, num_experts=4, num_experts_per_tok=2,
                          use_expert_bias=True, norm_topk_prob=True, routed_scaling_factor=1.0, conv_L_cache=3,
                          conv_bias=False, rope_theta=1000000.0, layer_types=["conv", "full_attention"]),
    "lfm3": recurrent("Lfm3ForCausalLM", "lfm3", without=[*NOT_LFM, "rope_theta"], num_hidden_layers=3, norm_eps=1e-5,
                      hidden_size=32, head_dim=16, conv_L_cache=7, conv_bias=True, use_sandwich_norm=True,
                      use_attention_gate=True, attention_bias=False, sliding_window=24,
                      layer_types=["conv", "sliding_attention", "full_attention"],
                      rope_parameters={
                          "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0},
                          "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0,
                                             "partial_rotary_factor": 0.5}}),
    "granite4-h": recurrent("GraniteMoeHybridForCausalLM", "granitemoehybrid", **GRANITE, **MAMBA, mamba_n_groups=1,
                            num_local_experts=4, num_experts_per_tok=2, intermediate_size=32,
                            shared_intermediate_size=64, position_embedding_type="nope",
                            layer_types=["mamba", "attention", "mamba"], num_hidden_layers=3),
    "bamba": recurrent("BambaForCausalLM", "bamba", **MAMBA, mamba_n_groups=2, attn_layer_indices=[1],
                       num_hidden_layers=3, attention_bias=False, mlp_bias=False, partial_rotary_factor=0.5,
                       hidden_size=64, intermediate_size=64),
    "nemotron_h": recurrent("NemotronHForCausalLM", "nemotron_h", without=["rms_norm_eps", "hidden_act"], **NEMOTRON,
                            hybrid_override_pattern="M-*-M", num_hidden_layers=5),
    "nemotron_h-moe": recurrent("NemotronHForCausalLM", "nemotron_h", without=["rms_norm_eps", "hidden_act"],
                                **NEMOTRON, layers_block_type=["mamba", "moe", "attention", "moe"],
                                num_hidden_layers=4, moe_intermediate_size=32, n_routed_experts=4, n_shared_experts=1,
                                moe_shared_expert_intermediate_size=64, num_experts_per_tok=2, n_group=1, topk_group=1,
                                norm_topk_prob=True, routed_scaling_factor=2.5, moe_latent_size=None),
    "mamba2": recurrent("Mamba2ForCausalLM", "mamba2",
                        without=["intermediate_size", "num_attention_heads", "num_key_value_heads", "rope_theta",
                                 "max_position_embeddings", "rms_norm_eps", "attention_dropout"],
                        num_heads=4, head_dim=32, state_size=16, n_groups=2, conv_kernel=4, expand=2, chunk_size=16,
                        use_bias=False, use_conv_bias=True, layer_norm_epsilon=1e-5, residual_in_fp32=True,
                        rms_norm=True, num_hidden_layers=2),
    "falcon_h1": recurrent("FalconH1ForCausalLM", "falcon_h1", **MAMBA, mamba_n_groups=1, mamba_d_ssm=128,
                           mamba_rms_norm=True, mamba_norm_before_gate=False, attention_bias=False, mlp_bias=False,
                           projectors_bias=False, head_dim=16, num_hidden_layers=2, lm_head_multiplier=0.5,
                           embedding_multiplier=3.0, mlp_multipliers=[0.8, 0.7], key_multiplier=0.6,
                           attention_out_multiplier=0.9, attention_in_multiplier=0.8, ssm_in_multiplier=0.7,
                           ssm_out_multiplier=0.8, ssm_multipliers=[0.9, 0.8, 0.7, 1.1, 1.2]),
}

MODELS.update(linear_models.MODELS)
MODELS.update({
    "nemotron_h-latent": recurrent("NemotronHForCausalLM", "nemotron_h", without=["rms_norm_eps", "hidden_act"],
                                   **NEMOTRON, hybrid_override_pattern="ME*E", num_hidden_layers=4,
                                   moe_intermediate_size=32, n_routed_experts=8, n_shared_experts=1,
                                   moe_shared_expert_intermediate_size=64, num_experts_per_tok=3, n_group=1,
                                   topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5, moe_latent_size=32),
    "jamba": recurrent("JambaForCausalLM", "jamba", without=["rope_theta"], **JAMBA, num_experts=4,
                       intermediate_size=32),
    "mamba": recurrent("MambaForCausalLM", "mamba", without=NOT_MAMBA_1, **MAMBA_1),
    "bailing_hybrid": recurrent("BailingHybridForCausalLM", "bailing_hybrid", hidden_size=64, intermediate_size=64,
                                head_dim=16, num_key_value_heads=4, kv_lora_rank=32, q_lora_rank=None,
                                qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, rms_norm_eps=1e-6,
                                num_experts=4, num_experts_per_tok=2, num_shared_experts=1, moe_intermediate_size=32,
                                n_group=2, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5,
                                first_k_dense_replace=1, short_conv_kernel_size=4, layer_group_size=2,
                                kda_safe_gate=True, kda_lower_bound=-5.0, attention_bias=False,
                                num_nextn_predict_layers=0),
    "falcon_mamba": recurrent("FalconMambaForCausalLM", "falcon_mamba", without=NOT_MAMBA_1, **MAMBA_1,
                              mixer_rms_eps=1e-6),
})

ZAMBA = {"layers_block_type": ["mamba", "hybrid", "hybrid"], "num_hidden_layers": 3, "num_mem_blocks": 1,
         "adapter_rank": 8, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4,
         "num_key_value_heads": 4, "attention_head_dim": 16, "hidden_act": "gelu", "n_mamba_heads": 4,
         "mamba_headdim": 16, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_ngroups": 2,
         "chunk_size": 16, "use_conv_bias": True, "add_bias_linear": False, "time_step_min": 0.001,
         "time_step_max": 0.1, "time_step_floor": 0.0001, "use_long_context": False}
# Behind all others, as a model's place says how its weights are drawn.
LATE = {
    "zamba2": recurrent("Zamba2ForCausalLM", "zamba2", **ZAMBA, use_mem_rope=True, use_shared_attention_adapter=True),
    "lara_mini": mixtures.mixture("LaraMiniForCausalLM", "lara_mini", num_hidden_layers=3, attention_bias=False,
                                  norm_topk_prob=True, sliding_window=24, **linear_models.EXPERTS,
                                  **{key: value for key, value in linear_models.DELTA.items()
                                     if key.startswith("linear")},
                                  layer_types=["linear_attention", "sliding_attention", "full_attention"]),
    "glm5_next": families.around("Glm5NextForConditionalGeneration", "glm5_next", mixtures.deepseek(
        "", "glm5_next_text", without=["architectures", "tie_word_embeddings", "rope_theta", "moe_layer_freq", "ep_size",
                                       "seq_aux", "first_k_dense_replace", "torch_dtype"],
        num_hidden_layers=3, qk_rope_head_dim=0, head_dim=0, n_routed_experts=4, n_group=1, topk_group=1,
        norm_topk_prob=True, routed_scaling_factor=2.0, **{**mixtures.INDEXER, "index_topk": 32},
        index_kpool=4,
        mlp_layer_types=["dense", "sparse", "sparse"], layer_types=["linear_attention", "indexed_attention",
                                                                    "indexed_attention"],
        indexer_types=["full", "full", "shared"], linear_num_heads=4, linear_head_dim=16, linear_conv_kernel_dim=4,
        linear_lower_bound=-5.0, hc_mult=4, hc_eps=1e-3, hc_sinkhorn_iters=20, swiglu_limit=1.0),
        vision_config={"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 64,
                       "patch_size": 4, "image_size": 8, "projection_intermediate_size": 8, "spatial_merge_size": 2,
                       "temporal_patch_size": 1}),
}


# Fields that its mixtures have in common.
PUZZLE = {"block_type": "moe", "n_routed_experts": 8, "moe_shared_expert_intermediate_size": 64, "moe_latent_size": 32}
LATE["nemotron_h-puzzle"] = recurrent(
    "NemotronHPuzzleForCausalLM", "nemotron_h_puzzle", without=["rms_norm_eps", "hidden_act"], **NEMOTRON,
    num_hidden_layers=4, n_shared_experts=1, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5,
    block_configs=[{"block_type": "mamba"}, {**PUZZLE, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
                   {"block_type": "attention"}, {**PUZZLE, "num_experts_per_tok": 4, "moe_intermediate_size": 64}],
    mtp_block_configs=[])
LATE["bailing_moe_v3"] = {
    **MODELS["bailing_hybrid"], "architectures": ["BailingMoeV3ForCausalLM"], "no_kda_lora": True, "use_mla_nope": False,
    "q_lora_rank": 32, "gated_attention_proj_granularity_type": "head_wise", "moe_shared_expert_intermediate_size": 32,
    "expert_swiglu_limit_list": None, "share_expert_swiglu_limit_list": [0, None], "partial_rotary_factor": 0.5}
VARIANTS = {name: {"default": ({}, LENGTH)} for name in [*MODELS, *LATE]}
# What is read by another class of transformers than the one that the checkpoint names.
REFERENCES = {
    "nemotron_h-puzzle": {"architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h",
                          "layers_block_type": ["mamba", "moe", "attention", "moe"],
                          **{key: value for key, value in LATE["nemotron_h-puzzle"]["block_configs"][1].items()
                             if key != "block_type"}},
    "bailing_moe_v3": {"architectures": ["BailingHybridForCausalLM"], "partial_rotary_factor": 1.0},
}
OUTSIDE = {}


def random_weight(name, weight, config):
    """As in mixtures.py; states forget within some ten positions, each head at its own rate."""
    short = name.rsplit(".", 1)[-1]
    if short == "A_log":
        return torch.rand_like(weight) * 2.0
    if short == "dt_bias":
        return torch.rand_like(weight) * 2.0 - 3.0
    if short == "D":
        return torch.rand_like(weight) + 0.5
    if name.endswith("linear_attn.norm.weight"):  # adds nothing to its weights
        return torch.rand_like(weight) + 0.5
    if config["model_type"] == "zamba2" and name.endswith((".linear.weight", "mamba.out_proj.weight")):
        return torch.randn_like(weight) * 0.3 * weight.shape[-1] ** -0.5  # or roundings would grow
    if name.endswith("dt_proj.bias"):
        return torch.rand_like(weight) * 2.0 - 3.0
    if "conv" in name and weight.dim() == 3:
        return torch.randn_like(weight) * weight.shape[-1] ** -0.5
    if name == "model.embedding_norm.weight" and families.is_tied(config):
        return torch.rand_like(weight) + 2.5
    if name.endswith("feed_forward.w2.weight") and families.is_tied(config):
        return torch.randn_like(weight) * 3.0 * weight.shape[-1] ** -0.5
    if "post_operator_norm" in name or "post_ffn_norm" in name:
        return torch.rand_like(weight) * 0.5 + 0.25
    if short == "weight" and name.endswith("embeddings.weight"):
        return torch.randn_like(weight)
    return mixtures.random_weight(name, weight, config)
