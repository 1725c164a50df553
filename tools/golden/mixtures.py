"""The tiny random models of mixtures of experts and of latent attention, beside those of families.py.

Names and fields are those of published checkpoints. Experts are wide enough for the engine's kernels:
hidden size a multiple of 64, inner sizes of 32. Routers are normal-distributed, biases are not 0.
"""

import torch

import families
from published import late_mixtures
from few_bits import fp8_weight, holds_fp8, mxfp4_weight, quant_method

LENGTH = families.LENGTH


def mixture(name, kind, without=(), **changes):
    fields = {"hidden_size": 64, "intermediate_size": 64, "head_dim": 16, **changes}
    return families.family(name, kind, without=without, **fields)


def deepseek(name, kind, **changes):
    fields = {"q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
              "v_head_dim": 32, "num_key_value_heads": 4, "moe_intermediate_size": 32,
              "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1,
              "first_k_dense_replace": 1, "moe_layer_freq": 1, "attention_bias": False,
              "rms_norm_eps": 1e-6, "ep_size": 1, "seq_aux": True}
    return families.family(name, kind, hidden_size=64, intermediate_size=64, **{**fields, **changes})


def yarn(**fields):
    return {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "beta_fast": 32,
            "beta_slow": 1, **fields}


def gpt_oss(**changes):
    """The limit of the gates is so low that many are cut."""
    return mixture("GptOssForCausalLM", "gpt_oss", without=["torch_dtype"], intermediate_size=32,
                   num_local_experts=4, experts_per_token=2, num_experts_per_tok=2,
                   attention_bias=True, sliding_window=24, swiglu_limit=1.5, rope_theta=150000.0,
                   layer_types=["sliding_attention", "full_attention"],
                   rope_scaling={"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0,
                                 "beta_slow": 1.0, "truncate": False,
                                 "original_max_position_embeddings": 64},
                   initial_context_length=64, router_aux_loss_coef=0.9, output_router_logits=False,
                   **changes)


SIGMOID = {"scoring_func": "sigmoid", "topk_method": "noaux_tc", "norm_topk_prob": True}
GROUPS = {"n_group": 4, "topk_group": 2}
INDEXER = {"index_topk": 64, "index_n_heads": 16, "index_head_dim": 32}

MODELS = {
    "deepseek_v2": deepseek("DeepseekV2ForCausalLM", "deepseek_v2", n_shared_experts=2, **GROUPS,
                            topk_method="group_limited_greedy", scoring_func="softmax",
                            norm_topk_prob=False, routed_scaling_factor=4.0, num_experts_per_tok=3,
                            rope_scaling=yarn(mscale=0.707, mscale_all_dim=0.707)),
    "deepseek_v2-lite": deepseek("DeepseekV2ForCausalLM", "deepseek_v2", q_lora_rank=None, n_group=1,
                                 topk_group=1, topk_method="greedy", scoring_func="softmax",
                                 norm_topk_prob=False, routed_scaling_factor=1.0,
                                 rope_scaling=yarn(mscale=1.0, mscale_all_dim=0.7)),
    "deepseek_v3": deepseek("DeepseekV3ForCausalLM", "deepseek_v3", **GROUPS, **SIGMOID,
                            routed_scaling_factor=2.5, num_nextn_predict_layers=1,
                            rope_scaling=yarn(mscale=1.0, mscale_all_dim=1.0)),
    "deepseek_v32": deepseek("DeepseekV32ForCausalLM", "deepseek_v32", n_group=2, topk_group=1, **SIGMOID,
                             routed_scaling_factor=2.5, num_nextn_predict_layers=1,
                             n_routed_experts=4, **INDEXER, rope_scaling=yarn(mscale=1.0, mscale_all_dim=1.0)),
    "glm_moe_dsa": deepseek("GlmMoeDsaForCausalLM", "glm_moe_dsa", n_group=1, topk_group=1, **SIGMOID,
                            routed_scaling_factor=2.5, n_routed_experts=4, rms_norm_eps=1e-5,
                            num_nextn_predict_layers=1, **INDEXER, indexer_rope_interleave=True,
                            indexer_types=["full", "shared"], index_share_for_mtp_iteration=True),
    "kimi_k2": deepseek("DeepseekV3ForCausalLM", "kimi_k2", n_group=1, topk_group=1, **SIGMOID,
                        routed_scaling_factor=2.827, num_nextn_predict_layers=0, kv_lora_rank=64,
                        qk_nope_head_dim=64, rope_theta=50000.0,
                        rope_scaling=yarn(mscale=1.0, mscale_all_dim=1.0, factor=32.0,
                                          beta_fast=1.0, beta_slow=1.0)),
    "glm4_moe_lite": deepseek("Glm4MoeLiteForCausalLM", "glm4_moe_lite", n_group=1, topk_group=1,
                              topk_method="noaux_tc", norm_topk_prob=True, routed_scaling_factor=1.8,
                              n_routed_experts=4, v_head_dim=64, rms_norm_eps=1e-5, num_nextn_predict_layers=1,
                              partial_rotary_factor=1.0),
    "glm4_moe": mixture("Glm4MoeForCausalLM", "glm4_moe", moe_intermediate_size=32, n_routed_experts=4,
                        num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1, n_group=1,
                        topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5,
                        attention_bias=True, use_qk_norm=True, partial_rotary_factor=0.5,
                        num_nextn_predict_layers=1),
    "dots1": mixture("Dots1ForCausalLM", "dots1", moe_intermediate_size=32, n_routed_experts=8,
                     num_experts_per_tok=3, n_shared_experts=2, first_k_dense_replace=1, n_group=1,
                     topk_group=1, **SIGMOID, routed_scaling_factor=2.5, attention_bias=False,
                     sliding_window=None, max_window_layers=2),
    "qwen2_moe": mixture("Qwen2MoeForCausalLM", "qwen2_moe", moe_intermediate_size=32,
                         shared_expert_intermediate_size=64, num_experts=8, num_experts_per_tok=3,
                         norm_topk_prob=False, decoder_sparse_step=2, mlp_only_layers=[],
                         use_sliding_window=False, sliding_window=512, max_window_layers=2),
    "qwen3_moe": mixture("Qwen3MoeForCausalLM", "qwen3_moe", moe_intermediate_size=32, num_experts=8,
                         num_experts_per_tok=3, norm_topk_prob=True, decoder_sparse_step=1,
                         mlp_only_layers=[0], attention_bias=False, use_sliding_window=False,
                         sliding_window=None, max_window_layers=2),
    "mixtral": mixture("MixtralForCausalLM", "mixtral", num_local_experts=4, num_experts_per_tok=2,
                       sliding_window=None, router_jitter_noise=0.0, intermediate_size=32,
                       rope_theta=1000000.0),
    "olmoe": mixture("OlmoeForCausalLM", "olmoe", num_experts=8, num_experts_per_tok=3,
                     norm_topk_prob=False, intermediate_size=32, attention_bias=False, clip_qkv=None),
    "granitemoe": mixture("GraniteMoeForCausalLM", "granitemoe", num_local_experts=8,
                          num_experts_per_tok=3, intermediate_size=32, attention_bias=False,
                          embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.7,
                          attention_multiplier=0.2),
    "granitemoeshared": mixture("GraniteMoeSharedForCausalLM", "granitemoeshared", num_local_experts=4,
                                num_experts_per_tok=2, intermediate_size=32,
                                shared_intermediate_size=64, attention_bias=False,
                                embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.7,
                                attention_multiplier=0.2),
    "ernie4_5_moe": mixture("Ernie4_5_MoeForCausalLM", "ernie4_5_moe", num_hidden_layers=3,
                            moe_intermediate_size=32, moe_num_experts=8, moe_k=2,
                            moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=-1,
                            moe_layer_interval=2, moe_use_aux_free=True, moe_norm_min=1e-12,
                            use_bias=False, rope_theta=500000.0),
    "hunyuan-moe": mixture("HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", intermediate_size=32,
                           moe_intermediate_size=[32, 32], num_experts=8, moe_topk=[3, 3],
                           num_shared_expert=[1, 1], use_mixed_mlp_moe=True, norm_topk_prob=True,
                           use_qk_norm=True, use_cla=False, attention_bias=False,
                           rope_scaling={"type": "dynamic", "alpha": 50.0, "factor": 1.0,
                                         "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                                         "mscale_all_dim": 1.0}),
    "phimoe": mixture("PhiMoEForCausalLM", "phimoe", without=["head_dim"], intermediate_size=32,
                      num_local_experts=8,
                      num_experts_per_tok=2, router_jitter_noise=0.2, input_jitter_noise=0.0,
                      attention_bias=True, lm_head_bias=True, sliding_window=None),
    "minimax_m2": mixture("MiniMaxM2ForCausalLM", "minimax_m2", intermediate_size=32,
                          num_local_experts=8, num_experts_per_tok=3, scoring_func="sigmoid",
                          use_routing_bias=True, use_qk_norm=True, qk_norm_type="per_layer",
                          rotary_dim=8, shared_intermediate_size=0, attn_type_list=[1, 1],
                          use_mtp=True, num_mtp_modules=3, mtp_transformer_layers=1,
                          rope_theta=5000000.0),
    "minimax_m3": mixture("MiniMaxM3ForCausalLM", "minimax_m3", intermediate_size=32, moe_intermediate_size=32,
                          dense_intermediate_size=64, shared_intermediate_size=32, n_shared_experts=1,
                          num_local_experts=4, num_experts_per_tok=2, scoring_func="sigmoid",
                          use_routing_bias=True, use_qk_norm=True, qk_norm_type="per_head", use_gemma_norm=True,
                          rotary_dim=8, partial_rotary_factor=0.5, rope_theta=5000000.0, hidden_act="swigluoai",
                          swiglu_alpha=1.702, swiglu_limit=1.5, routed_scaling_factor=2.0,
                          first_k_dense_replace=1, moe_layer_freq=[0, 1], attention_output_gate=False,
                          sparse_attention_config={
                              "use_sparse_attention": True, "sparse_attention_freq": [0, 1],
                              "sparse_disable_index_value": [0, 1], "sparse_block_size": 8,
                              "sparse_index_dim": 16, "sparse_init_block": 0, "sparse_local_block": 1,
                              "sparse_num_index_heads": 2, "sparse_score_type": "max",
                              "sparse_topk_blocks": 4}),
    "gpt_oss": gpt_oss(),
    "gpt_oss-mxfp4": gpt_oss(num_attention_heads=2, num_key_value_heads=1, quantization_config={
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                   "model.embed_tokens", "lm_head"]}),
    "llama4-moe": families.family("Llama4ForCausalLM", "llama4_text", hidden_size=64, head_dim=16,
                                  intermediate_size=32, intermediate_size_mlp=64, num_hidden_layers=4,
                                  num_local_experts=4, num_experts_per_tok=1,
                                  interleave_moe_layer_step=2, use_qk_norm=True,
                                  no_rope_layers=[1, 0, 1, 0], no_rope_layer_interval=2,
                                  attention_chunk_size=32, attn_temperature_tuning=True, floor_scale=16,
                                  attn_scale=0.3, attention_bias=False, router_jitter_noise=0.0,
                                  output_router_logits=False, router_aux_loss_coef=0.001),
    "qwen3_vl_moe": families.around(
        "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe",
        families.inner("qwen3_vl_moe_text", hidden_size=64, intermediate_size=64, head_dim=16,
                       moe_intermediate_size=32, num_experts=8, num_experts_per_tok=2,
                       norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[0],
                       attention_bias=False,
                       rope_scaling={"rope_type": "default", "mrope_interleaved": True,
                                     "mrope_section": [4, 2, 2]}),
        vision_config={**families.QWEN3_VISION, "out_hidden_size": 64}),
    "mistral4": deepseek("Mistral4ForCausalLM", "mistral4", n_group=1, topk_group=1,
                         first_k_dense_replace=0, n_routed_experts=4, norm_topk_prob=True,
                         routed_scaling_factor=1.0, head_dim=48,
                         rope_parameters={"rope_type": "yarn", "type": "yarn", "rope_theta": 10000.0, "factor": 8.0,
                                          "original_max_position_embeddings": 64, "beta_fast": 32.0,
                                          "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                                          "llama_4_scaling_beta": 0.3,
                                          "partial_rotary_factor": 16 / 48}),
    "flex_olmo": mixture("FlexOlmoForCausalLM", "flex_olmo", without=["head_dim"], num_experts=4,
                         num_hidden_layers=1, num_experts_per_tok=2, norm_topk_prob=False,
                         intermediate_size=32,
                         attention_bias=False),
    "ernie4_5_moe-bias": mixture("Ernie4_5_MoeForCausalLM", "ernie4_5_moe", moe_intermediate_size=32,
                                 num_hidden_layers=1, moe_num_experts=4, moe_k=2,
                                 moe_num_shared_experts=1, moe_layer_start_index=0, moe_layer_end_index=-1,
                                 moe_layer_interval=1, moe_use_aux_free=True, moe_norm_min=1e-12,
                                 use_bias=True, rope_theta=500000.0),
    "gemma4-moe": mixture("Gemma4ForCausalLM", "gemma4_text", without=["rope_theta"], **families.GEMMA,
                          num_hidden_layers=1, layer_types=["full_attention"], global_head_dim=32,
                          rope_parameters={**families.GEMMA_ROPES, "full_attention": {
                              "rope_type": "proportional", "partial_rotary_factor": 0.25,
                              "rope_theta": 1000000.0}},
                          final_logit_softcapping=8.0, vocab_size_per_layer_input=128,
                          hidden_size_per_layer_input=0, num_kv_shared_layers=0,
                          attention_k_eq_v=True, num_global_key_value_heads=1,
                          enable_moe_block=True, num_experts=4, top_k_experts=2,
                          moe_intermediate_size=32),
    "dbrx": families.family("DbrxForCausalLM", "dbrx",
                            without=[*families.NOT_GPT2, "rms_norm_eps", "head_dim"], d_model=64,
                            n_heads=4, n_layers=2, max_seq_len=512, rope_theta=10000.0,
                            resid_pdrop=0.0, emb_pdrop=0.0,
                            attn_config={"clip_qkv": 1.5, "kv_n_heads": 2, "rope_theta": 10000.0},
                            ffn_config={"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2,
                                        "hidden_size": 64, "ffn_act_fn": {"name": "silu"},
                                        "moe_normalize_expert_weights": 1.0}),
    "mimo_v2": mixture("MiMoV2FlashForCausalLM", "mimo_v2_flash",
                       without=["rope_theta"], layernorm_epsilon=1e-5,
                       rms_norm_eps=1e-5, head_dim=24, v_head_dim=16, num_attention_heads=4,
                       num_key_value_heads=1, swa_num_key_value_heads=2, sliding_window=25,
                       sliding_window_size=24, num_hidden_layers=3, hybrid_layer_pattern=[0, 1, 0],
                       layer_types=["full_attention", "sliding_attention", "full_attention"],
                       mlp_layer_types=["dense", "sparse", "sparse"], moe_layer_freq=[0, 1, 1],
                       moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2,
                       n_group=1, topk_group=1, **SIGMOID, routed_scaling_factor=None,
                       attention_value_scale=0.707, attention_bias=False,
                       add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False,
                       partial_rotary_factor=0.334, swa_rope_theta=1000.0,
                       rope_parameters={
                           "full_attention": {"rope_type": "default", "rope_theta": 50000.0,
                                              "partial_rotary_factor": 0.334},
                           "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0,
                                                 "partial_rotary_factor": 0.334}}),
    "solar_open": mixture("SolarOpenForCausalLM", "solar_open", moe_intermediate_size=32,
                          n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=1,
                          topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.0,
                          attention_bias=False),
    "hy_v3": mixture("HYV3ForCausalLM", "hy_v3", moe_intermediate_size=32, num_experts=4,
                     num_experts_per_tok=2, num_shared_experts=1, router_scaling_factor=2.5,
                     mlp_layer_types=["dense", "sparse"], attention_bias=False, mlp_bias=False),
    "exaone_moe": mixture("ExaoneMoeForCausalLM", "exaone_moe", moe_intermediate_size=32,
                          num_experts=4, num_experts_per_tok=2, num_shared_experts=1, n_group=1,
                          topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5,
                          first_k_dense_replace=1, mlp_layer_types=["dense", "sparse"],
                          sliding_window=24, sliding_window_pattern="LG",
                          layer_types=["sliding_attention", "full_attention"]),
    "mellum": mixture("MellumForCausalLM", "mellum", without=["rope_theta"], moe_intermediate_size=32,
                      num_experts=4, num_experts_per_tok=2, norm_topk_prob=True, sliding_window=24,
                      layer_types=["sliding_attention", "full_attention"],
                      mlp_layer_types=["sparse", "dense"], attention_bias=False,
                      rope_parameters=families.GEMMA_ROPES),
    "granitemoe_swa": mixture("GraniteMoeSWAForCausalLM", "granitemoe_swa", num_local_experts=4,
                              num_experts_per_tok=2, intermediate_size=32, without=["head_dim"],
                              shared_intermediate_size=64, attention_bias=False,
                              embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.7,
                              attention_multiplier=0.2, sliding_window=24,
                              layer_types=["full_attention", "sliding_attention"],
                              layer_rope_theta=[0, 10000.0]),
    "glm4v_moe": families.around(
        "Glm4vMoeForConditionalGeneration", "glm4v_moe",
        families.inner("glm4v_moe_text", hidden_size=64, intermediate_size=64, head_dim=16,
                       moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2,
                       n_shared_experts=1, n_group=1, topk_group=1, norm_topk_prob=True,
                       routed_scaling_factor=1.0, first_k_dense_replace=1, attention_bias=True,
                       rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                                        "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]}),
        vision_config={"depth": 1, "hidden_size": 16, "num_heads": 2, "image_size": 8,
                       "patch_size": 4, "out_hidden_size": 64, "intermediate_size": 16,
                       "spatial_merge_size": 2, "temporal_patch_size": 1}),
    "longcat_flash": mixture("LongcatFlashForCausalLM", "longcat_flash",
                             without=["num_hidden_layers", "intermediate_size", "num_key_value_heads"],
                             num_layers=2, num_attention_heads=2, ffn_hidden_size=32,
                             expert_ffn_hidden_size=64, n_routed_experts=3, zero_expert_num=2,
                             zero_expert_type="identity", moe_topk=3, routed_scaling_factor=2.0,
                             router_bias=False, q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=32,
                             qk_rope_head_dim=16, v_head_dim=32, attention_method="MLA",
                             attention_bias=False, mla_scale_q_lora=True, mla_scale_kv_lora=True),
    "granite4-moe": mixture("GraniteMoeHybridForCausalLM", "granitemoehybrid", without=["head_dim"],
                            num_local_experts=4, num_experts_per_tok=2, intermediate_size=32,
                            shared_intermediate_size=64, attention_bias=False,
                            embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.7,
                            attention_multiplier=0.2, position_embedding_type=None,
                            layer_types=["attention", "attention"], mamba_n_heads=4,
                            mamba_d_head=32),
    "bailing_moe_v2": mixture("BailingMoeV2ForCausalLM", "bailing_moe", moe_intermediate_size=32,
                              num_experts=8, num_experts_per_tok=3, num_shared_experts=1,
                              first_k_dense_replace=1, **GROUPS, score_function="sigmoid",
                              norm_topk_prob=True, routed_scaling_factor=2.5, use_qk_norm=True,
                              use_qkv_bias=False, use_bias=False, partial_rotary_factor=0.5,
                              moe_router_enable_expert_bias=True, norm_softmax=False,
                              num_nextn_predict_layers=1),
    "sarvam_moe": mixture("SarvamMoEForCausalLM", "sarvam_moe", moe_intermediate_size=32,
                          num_experts=4, num_experts_per_tok=2, num_shared_experts=1,
                          first_k_dense_replace=1, n_group=1, topk_group=1,
                          score_function="sigmoid", norm_topk_prob=True, routed_scaling_factor=2.5,
                          use_qk_norm=True, use_qkv_bias=False, use_bias=False,
                          moe_router_enable_expert_bias=True),
    "cohere2_moe": mixture("Cohere2MoeForCausalLM", "cohere2_moe", num_hidden_layers=3,
                           intermediate_size=32, prefix_dense_intermediate_size=64,
                           first_k_dense_replace=1, prefix_dense_sliding_window_pattern=1,
                           sliding_window_pattern=2, num_experts=4, num_experts_per_tok=2,
                           num_shared_experts=1, shared_expert_combination_strategy="sum",
                           expert_selection_fn="sigmoid", norm_topk_prob=False, logit_scale=0.5,
                           sliding_window=24, attention_bias=False, tie_word_embeddings=True),
    "cohere2_moe-mean": mixture("Cohere2MoeForCausalLM", "cohere2_moe", without=["rms_norm_eps"],
                                layer_norm_eps=1e-5, intermediate_size=32, num_experts=4,
                                num_experts_per_tok=2, num_shared_experts=2, logit_scale=0.5,
                                shared_expert_combination_strategy="average",
                                expert_selection_fn="softmax", sliding_window=24,
                                layer_types=["sliding_attention", "full_attention"],
                                attention_bias=False, tie_word_embeddings=True),
    "axk1": deepseek("AXK1ForCausalLM", "axk1", **GROUPS, norm_topk_prob=True,
                     routed_scaling_factor=2.5),
    "axk2": deepseek("AXK2ForCausalLM", "axk2", n_group=1, topk_group=1, norm_topk_prob=True,
                     routed_scaling_factor=2.5, n_routed_experts=4, gated_norm_rank=8, **INDEXER),
    "flint": mixture("FlintForCausalLM", "flint", moe_intermediate_size=32, num_experts=4,
                     num_experts_per_tok=2, shared_expert_intermediate_size=32,
                     norm_topk_prob=True, mlp_only_layers=[0], sliding_window=24,
                     layer_types=["sliding_attention", "full_attention"], attention_bias=False),
    "cohere2_vision-moe": families.around(
        "Cohere2VisionForConditionalGeneration", "cohere2_vision",
        families.inner("cohere2_moe", hidden_size=64, intermediate_size=32, head_dim=16,
                       num_hidden_layers=3, prefix_dense_intermediate_size=64,
                       first_k_dense_replace=1, prefix_dense_sliding_window_pattern=1,
                       sliding_window_pattern=2, num_experts=4, num_experts_per_tok=2,
                       num_shared_experts=1, shared_expert_combination_strategy="sum",
                       expert_selection_fn="sigmoid", norm_topk_prob=False, logit_scale=1.0,
                       sliding_window=24, attention_bias=False),
        vision_config={"model_type": "siglip_vision_model", "hidden_size": 16,
                       "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                       "image_size": 8, "patch_size": 4},
        alignment_intermediate_size=16),
    "trinity": mixture("AfmoeForCausalLM", "afmoe", moe_intermediate_size=32, num_experts=4,
                       num_experts_per_tok=2, num_shared_experts=1, num_dense_layers=1,
                       score_func="sigmoid", route_norm=True, route_scale=2.0, n_group=1,
                       topk_group=1, mup_enabled=True, sliding_window=24,
                       global_attn_every_n_layers=2,
                       layer_types=["sliding_attention", "full_attention"], attention_bias=False),
    "laguna": mixture("LagunaForCausalLM", "laguna", without=["rope_theta"], num_experts=4,
                      num_experts_per_tok=2, moe_intermediate_size=32,
                      shared_expert_intermediate_size=32, norm_topk_prob=True,
                      moe_routed_scaling_factor=2.5, moe_router_logit_softcapping=0.0,
                      gating="per-head", num_attention_heads_per_layer=[4, 6], sliding_window=24,
                      layer_types=["full_attention", "sliding_attention"],
                      mlp_layer_types=["dense", "sparse"], attention_bias=False,
                      rope_parameters={
                          "full_attention": families.yarn(attention_factor=1.2,
                                                          partial_rotary_factor=0.5),
                          "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0,
                                                "partial_rotary_factor": 1.0}}),
    "step3p7": families.around(
        "Step3p7ForConditionalGeneration", "step3p7",
        families.family("", "step3p5", without=["architectures", "torch_dtype",
                                                "tie_word_embeddings", "num_key_value_heads",
                                                "pad_token_id"],
                        hidden_size=64, intermediate_size=64, head_dim=16, num_hidden_layers=3,
                        num_attention_groups=2, moe_num_experts=4, moe_top_k=2,
                        moe_intermediate_size=32, share_expert_dim=32, moe_layers_enum="1,2",
                        moe_router_activation="sigmoid", moe_router_scaling_factor=2.0,
                        norm_expert_weight=True, use_moe_router_bias=True,
                        use_head_wise_attn_gate=True, zero_centered=True, sliding_window=24,
                        layer_types=["full_attention", "sliding_attention", "full_attention"],
                        rope_theta=[50000.0, 1000.0, 50000.0],
                        partial_rotary_factors=[0.5, 1.0, 0.5], rope_scaling=families.LLAMA3,
                        yarn_only_types=["full_attention"],
                        attention_other_setting={"attention_type": "sliding_attention",
                                                 "num_attention_heads": 6,
                                                 "num_attention_groups": 2, "head_dim": 16},
                        swiglu_limits=[0.0, 0.5, 0.3], swiglu_limits_shared=[0.4, 0.0, 0.6]),
        vision_config={"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                       "image_size": 56, "patch_size": 14, "mlp_ratio": 2.0,
                       "max_position_embeddings": 16}),
    "kolibri1": mixture("Kolibri1ForCausalLM", "kolibri1", without=["intermediate_size"],
                        num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32,
                        shared_expert_intermediate_size=32, norm_topk_prob=True,
                        sliding_window=24,
                        layer_types=["sliding_attention", "full_attention"]),
    # Windows of 24, entries of 4 positions of which 16 are chosen, entries of 16, tokens that say experts.
    "deepseek_v4": mixture("DeepseekV4ForCausalLM", "deepseek_v4", without=["intermediate_size"],
                           num_hidden_layers=3, num_key_value_heads=1, head_dim=32, rms_norm_eps=1e-6,
                           q_lora_rank=32, o_groups=2, o_lora_rank=16, partial_rotary_factor=0.5,
                           moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2,
                           n_shared_experts=1, scoring_func="sqrtsoftplus", routed_scaling_factor=1.5,
                           swiglu_limit=1.0, sliding_window=24, compress_rope_theta=160000.0,
                           compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": 16},
                           layer_types=["sliding_attention", "compressed_sparse_attention",
                                        "heavily_compressed_attention"],
                           mlp_layer_types=["hash_moe", "moe", "moe"],
                           index_topk=16, index_n_heads=16, index_head_dim=32,
                           hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-6, num_nextn_predict_layers=0,
                           rope_scaling=yarn()),
}

LONGROPE = {"type": "longrope", "short_factor": [1.0] * 8,
            "long_factor": [1.0, 1.1, 1.3, 1.8, 2.5, 4.0, 6.0, 8.0], "short_mscale": 1.1,
            "long_mscale": 1.25, "original_max_position_embeddings": 64}

MODELS.update({
    # As published: under the names of its own code.
    "sarvam_mla": deepseek("SarvamMLAForCausalLM", "sarvam_mla", without=["n_routed_experts", "n_shared_experts"],
                           q_lora_rank=None, head_dim=48, q_head_dim=48, num_experts=8, num_shared_experts=1,
                           n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5,
                           score_function="sigmoid", rope_theta=10000.0,
                           rope_scaling=yarn(type="deepseek_yarn", mscale=1.0, mscale_all_dim=1.0)),
    "kimi_vl": families.around("KimiVLForConditionalGeneration", "kimi_vl", deepseek(
        "", "deepseek_v3", without=["architectures", "tie_word_embeddings"], q_lora_rank=None, n_group=1,
        topk_group=1, **SIGMOID, routed_scaling_factor=2.446, n_shared_experts=2, rope_theta=800000.0,
        rope_scaling=None), media_placeholder_token_id=120, vocab_size=128,
        vision_config={"model_type": "moonvit", "hidden_size": 8}),
    "kimi_k25": families.around("KimiK25ForConditionalGeneration", "kimi_k25", deepseek(
        "", "kimi_k2", without=["architectures", "tie_word_embeddings", "torch_dtype"], n_group=1, topk_group=1, **SIGMOID,
        routed_scaling_factor=2.827, num_nextn_predict_layers=0, kv_lora_rank=64, qk_nope_head_dim=64,
        rope_theta=50000.0, rope_scaling=yarn(mscale=1.0, mscale_all_dim=1.0, factor=64.0, beta_fast=32.0,
                                              beta_slow=1.0)),
        media_placeholder_token_id=130, image_token_id=130, video_token_id=131,
        vision_config={"model_type": "kimi_k25_vision", "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2,
                       "num_hidden_layers": 1, "patch_size": 4, "pos_emb_height": 4, "pos_emb_width": 4},
        projection_hidden_size=16),
    "bailing_moe": mixture("BailingMoeForCausalLM", "bailing_moe", moe_intermediate_size=32, num_experts=8,
                           num_experts_per_tok=3, num_shared_experts=2, first_k_dense_replace=0,
                           norm_topk_prob=True, norm_softmax=False, norm_head=False, use_qkv_bias=False,
                           use_bias=False, router_dtype=None, rope_theta=600000.0),
})

MODELS["deepseek_v1"] = mixture("DeepseekForCausalLM", "deepseek", num_key_value_heads=4, moe_intermediate_size=32,
                                n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, norm_topk_prob=False,
                                first_k_dense_replace=1, moe_layer_freq=1, scoring_func="softmax", rope_scaling=None,
                                attention_bias=False)

# As DeepSeek V3 is published, in sizes of which some are whole blocks and some are not.
MODELS["deepseek_v3-fp8"] = {
    **deepseek("DeepseekV3ForCausalLM", "deepseek_v3", n_group=2, topk_group=1, n_routed_experts=4, **SIGMOID,
               routed_scaling_factor=2.5, q_lora_rank=128, kv_lora_rank=128, moe_intermediate_size=128,
               rope_scaling=yarn(mscale=1.0, mscale_all_dim=1.0)),
    "hidden_size": 256, "intermediate_size": 160,
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                            "weight_block_size": [128, 128]}}

MODELS["hy_v4"] = deepseek("HYV4ForCausalLM", "hy_v4",
                           without=["first_k_dense_replace", "moe_layer_freq", "ep_size", "seq_aux"],
                           n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.0, n_routed_experts=4,
                           rms_norm_eps=1e-5, **INDEXER, indexer_types=["full", "shared"], hc_mult=4,
                           hc_magnitude=1.5, hc_eps=1e-2, swiglu_limit=1.0, learnable_sink_init=0.0,
                           rope_interleave=False)  # transformers turns halves, published files want pairs

# Behind all others, whose seeds go by their places.
MODELS.update(late_mixtures.models(mixture))
VARIANTS = {name: {"default": ({}, LENGTH)} for name in MODELS}
VARIANTS["deepseek_v3"]["one-group"] = ({"n_group": 1, "topk_group": 1, "norm_topk_prob": False,
                                         "rope_scaling": None}, LENGTH)
VARIANTS["deepseek_v3"]["half-rope"] = ({"rope_interleave": False}, LENGTH)
VARIANTS["deepseek_v2"]["greedy"] = ({"topk_method": "greedy", "rope_scaling": None}, LENGTH)
VARIANTS["qwen2_moe"]["normalised"] = ({"norm_topk_prob": True}, LENGTH)
VARIANTS["qwen3_moe"]["as-they-are"] = ({"norm_topk_prob": False, "num_experts_per_tok": 8}, LENGTH)
VARIANTS["olmoe"]["normalised"] = ({"norm_topk_prob": True}, LENGTH)
VARIANTS["olmoe"]["clip"] = ({"clip_qkv": 0.9}, LENGTH)
VARIANTS["granitemoeshared"]["not-shared"] = ({"shared_intermediate_size": 0}, LENGTH)
VARIANTS["llama4-moe"]["two"] = ({"num_experts_per_tok": 2}, LENGTH)
VARIANTS["cohere2_moe-mean"]["sigmoid"] = ({"expert_selection_fn": "sigmoid"}, LENGTH)
VARIANTS["phimoe"]["longrope"] = ({"rope_scaling": LONGROPE, "original_max_position_embeddings": 64},
                                  LENGTH)

# What is read by another class of transformers than the one that the checkpoint names.
REFERENCES = {
    "kimi_k2": {"model_type": "deepseek_v3"},
    "minimax_m3": {"architectures": ["MiniMaxM3VLForCausalLM"], "model_type": "minimax_m3_vl_text"},
    "phimoe": {"architectures": ["PhimoeForCausalLM"]},
    "bailing_moe_v2": {"architectures": ["Glm4MoeForCausalLM"], "model_type": "sarvam_moe"},
    "sarvam_moe": {"architectures": ["Glm4MoeForCausalLM"]},
    "sarvam_mla": {"architectures": ["DeepseekV3ForCausalLM"]},
    "kimi_vl": {"architectures": ["DeepseekV3ForCausalLM"], **MODELS["kimi_vl"]["text_config"]},
    "kimi_k25": {"architectures": ["Kimi_K25ForConditionalGeneration"]},
    "bailing_moe": {"architectures": ["GraniteMoeSharedForCausalLM"], "model_type": "granitemoeshared",
                    "num_local_experts": 8, "intermediate_size": 32, "shared_intermediate_size": 64,
                    "attention_multiplier": 0.25, "embedding_multiplier": 1.0, "residual_multiplier": 1.0,
                    "logits_scaling": 1.0, "attention_bias": False},
}
# Of these the reference has the text part alone.
OUTSIDE = {"kimi_vl": ("text_config", "vision_config")}
# Modules whose embedding and output matrix are the model's, and which pass on what leaves their norm.
BAILING = ("bailing_moe_v2",)


def random_weight(name, weight, config):
    """As in families.py, for the names that transformers has in memory."""
    if quant_method(config) == "fp8" and holds_fp8(name):
        plain = random_weight(name, weight, {**config, "quantization_config": {}})
        halves = 2 if name.endswith("gate_up_proj") else 1
        matrices = [part for matrix in plain.reshape(-1, *plain.shape[-2:]) for part in matrix.chunk(halves)]
        return torch.cat([fp8_weight(matrix) for matrix in matrices]).reshape(plain.shape)
    short = name.removesuffix(".weight").rsplit(".", 1)[-1]
    if short in ("e_score_correction_bias", "expert_bias"):
        return torch.randn_like(weight) * (0.1 if config["model_type"].startswith("ernie4_5") else 0.3)
    if name.endswith("router.proj.weight"):
        return torch.randn_like(weight) * 1.5  # its rows are scaled down
    if short in ("gate", "router", "wg", "classifier") or name.endswith("router.layer.weight"):
        return torch.randn_like(weight) * 1.5 * weight.shape[-1] ** -0.5
    if short == "tid2eid":
        choices = [torch.randperm(config["n_routed_experts"])[:weight.shape[1]] for _ in range(weight.shape[0])]
        return torch.stack(choices).float()
    if short == "output_linear" and weight.dim() == 2 and config["model_type"] == "bailing_moe":
        return torch.randn_like(weight) * weight.shape[-1] ** -0.5
    if short == "position_bias":
        return torch.randn_like(weight) * 0.7
    if short == "sinks":
        return torch.randn_like(weight) * 1.5
    if short.endswith("proj_bias"):
        return torch.randn_like(weight) * 0.3
    if weight.dim() == 3 and quant_method(config) == "mxfp4":
        return torch.cat([mxfp4_weight(matrix)[None] for matrix in weight])
    if weight.dim() == 3:
        turned = config["model_type"] in ("llama4_text", "gpt_oss", "aria_text")
        return torch.randn_like(weight) * weight.shape[-2 if turned else -1] ** -0.5
    return families.random_weight(name.replace("norm_attn_norm.", ""), weight, config)
