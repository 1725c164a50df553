"""The tiny random models of dense families, beside those of architectures.py, and what is asked of
each: one variant a family, more where a family has forms that differ.

REFERENCES has the families that transformers has no class for: the class that computes the same, and
what its config says differently. Names of their checkpoints: checkpoint_names.py.
"""

import torch

import named_families
import wrapped_models

COMMON = {
    "vocab_size": 128, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
    "rope_theta": 10000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu", "attention_dropout": 0.0,
    "tie_word_embeddings": False, "initializer_range": 0.02, "bos_token_id": None,
    "eos_token_id": None, "pad_token_id": None, "torch_dtype": "bfloat16",
}
LENGTH = 336


def family(name, kind, without=(), **changes):
    config = {**COMMON, "architectures": [name], "model_type": kind, **changes}
    return {key: value for key, value in config.items() if key not in without}


def inner(kind, **changes):
    """A text_config."""
    outside = ("architectures", "torch_dtype", "tie_word_embeddings")
    return family("", kind, without=outside, **changes)


def around(name, kind, text, **changes):
    """A model that reads images around a text_config."""
    return {"architectures": [name], "model_type": kind, "text_config": text,
            "torch_dtype": "bfloat16", "tie_word_embeddings": False, "image_token_id": 120,
            "video_token_id": 121, "vision_start_token_id": 122, "vision_end_token_id": 123,
            **changes}


def yarn(**fields):
    return {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0,
            "original_max_position_embeddings": 64, "beta_fast": 32.0, "beta_slow": 1.0, **fields}


PIXTRAL = {"model_type": "pixtral", "hidden_size": 16, "intermediate_size": 8, "num_hidden_layers": 1,
           "num_attention_heads": 2, "head_dim": 8, "image_size": 8, "patch_size": 4}
QWEN_VISION = {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "out_hidden_size": 32,
               "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 1}
QWEN3_VISION = {**QWEN_VISION, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]}
GEMMA = {"head_dim": 16, "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 24,
         "tie_word_embeddings": True, "attention_bias": False}
GEMMA_ROPES = {"full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
               "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0}}
GEMMA4_ROPES = {**GEMMA_ROPES, "full_attention": {
    "rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}}
GRANITE = {"attention_bias": False, "embedding_multiplier": 3.0, "logits_scaling": 2.0,
           "residual_multiplier": 0.7, "attention_multiplier": 0.2}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
WINDOWS = ["sliding_attention", "full_attention"]
NOT_OLD = ["rms_norm_eps", "rope_theta", "num_key_value_heads"]
NOT_GPT2 = [*NOT_OLD, "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
            "max_position_embeddings", "hidden_act"]
DECI_BLOCKS = [
    {"attention": {"n_heads_in_group": 2, "no_op": False, "replace_with_linear": False},
     "ffn": {"ffn_mult": 1.5, "no_op": False, "replace_with_linear": False}},
    {"attention": {"n_heads_in_group": None, "no_op": True, "replace_with_linear": False},
     "ffn": {"ffn_mult": 0.5, "no_op": False, "replace_with_linear": False}},
    {"attention": {"n_heads_in_group": 4, "no_op": False, "replace_with_linear": False},
     "ffn": {"ffn_mult": None, "no_op": True, "replace_with_linear": False}},
]

MODELS = {
    "ministral3": family("Ministral3ForCausalLM", "ministral3", head_dim=16, sliding_window=None,
                         rope_parameters=yarn(llama_4_scaling_beta=0.3, mscale=1.0,
                                              mscale_all_dim=1.0)),
    "mistral3": around("Mistral3ForConditionalGeneration", "mistral3",
                       inner("mistral", head_dim=16, sliding_window=None), vision_config=PIXTRAL,
                       image_token_index=120, spatial_merge_size=2),
    "glm": family("GlmForCausalLM", "glm", head_dim=16, partial_rotary_factor=0.5,
                  attention_bias=True),
    "glm4": family("Glm4ForCausalLM", "glm4", head_dim=16, partial_rotary_factor=0.5,
                   attention_bias=True),
    "granite": family("GraniteForCausalLM", "granite", **GRANITE, mlp_bias=False),
    "olmo2": family("Olmo2ForCausalLM", "olmo2", attention_bias=False),
    "olmo3": family("Olmo3ForCausalLM", "olmo3", attention_bias=False, sliding_window=24,
                    layer_types=WINDOWS, rope_theta=500000.0,
                    rope_scaling=dict(yarn(), rope_theta=500000.0)),
    "cohere": family("CohereForCausalLM", "cohere", without=["rms_norm_eps"], layer_norm_eps=1e-5,
                     logit_scale=0.5, use_qk_norm=True, tie_word_embeddings=True),
    "cohere2": family("Cohere2ForCausalLM", "cohere2", without=["rms_norm_eps"],
                      layer_norm_eps=1e-5, logit_scale=0.5, head_dim=16, sliding_window=24,
                      layer_types=WINDOWS, tie_word_embeddings=True),
    "exaone4": family("Exaone4ForCausalLM", "exaone4", head_dim=16, sliding_window=24,
                      sliding_window_pattern=2, layer_types=WINDOWS),
    "seed-oss": family("SeedOssForCausalLM", "seed_oss", head_dim=16, attention_bias=True,
                       attention_out_bias=False, mlp_bias=False, residual_dropout=0.1),
    "ernie4_5": family("Ernie4_5ForCausalLM", "ernie4_5", head_dim=16, use_bias=True,
                       tie_word_embeddings=True),
    "hunyuan": family("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", head_dim=16,
                      attention_bias=False, eod_token_id=3,
                      rope_scaling={"type": "dynamic", "alpha": 50.0, "factor": 1.0, "beta_fast": 32,
                                    "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}),
    "apertus": family("ApertusForCausalLM", "apertus", hidden_act="xielu", attention_bias=False,
                      rope_scaling=LLAMA3),
    "mimo": family("MiMoForCausalLM", "mimo", head_dim=16, attention_bias=True, sliding_window=512,
                   max_window_layers=2, use_sliding_window=False, use_mrope=False,
                   num_nextn_predict_layers=1),
    "nemotron": family("NemotronForCausalLM", "nemotron", without=["rms_norm_eps"], norm_eps=1e-5,
                       head_dim=16, hidden_act="relu2", partial_rotary_factor=0.5,
                       attention_bias=False, mlp_bias=False),
    "deci": family("DeciLMForCausalLM", "nemotron-nas", without=["num_key_value_heads"],
                   hidden_size=16, intermediate_size=None, num_key_value_heads=None,
                   num_hidden_layers=3, attention_bias=False, mlp_bias=False,
                   block_configs=DECI_BLOCKS),
    "arcee": family("ArceeForCausalLM", "arcee", hidden_act="relu2", head_dim=16,
                    attention_bias=False, mlp_bias=False),
    "internlm3": family("InternLM3ForCausalLM", "internlm3", head_dim=16, bias=False, qkv_bias=True,
                        rope_scaling={"rope_type": "dynamic", "factor": 6.0},
                        max_position_embeddings=64),
    "helium": family("HeliumForCausalLM", "helium", head_dim=8, attention_bias=False,
                     mlp_bias=False),
    "starcoder2": family("Starcoder2ForCausalLM", "starcoder2", without=["rms_norm_eps"],
                         norm_epsilon=1e-5, hidden_act="gelu_pytorch_tanh", use_bias=True,
                         sliding_window=24, residual_dropout=0.0, embedding_dropout=0.0,
                         tie_word_embeddings=True),
    "stablelm": family("StableLmForCausalLM", "stablelm", without=["rms_norm_eps"],
                       num_attention_heads=2, num_key_value_heads=1, layer_norm_eps=1e-5,
                       partial_rotary_factor=0.25, use_qkv_bias=True, qk_layernorm=False,
                       use_parallel_residual=False),
    "stablelm-parallel": family("StableLmForCausalLM", "stablelm", without=["rms_norm_eps"],
                                num_attention_heads=2, num_key_value_heads=1, layer_norm_eps=1e-5,
                                partial_rotary_factor=0.25, use_qkv_bias=False, qk_layernorm=True,
                                use_parallel_residual=True),
    "gemma": family("GemmaForCausalLM", "gemma", head_dim=16, hidden_act="gelu_pytorch_tanh",
                    tie_word_embeddings=True, attention_bias=False),
    "vaultgemma": family("VaultGemmaForCausalLM", "vaultgemma", **GEMMA, query_pre_attn_scalar=60,
                         layer_types=WINDOWS, attn_logit_softcapping=3.0,
                         final_logit_softcapping=8.0),
    "gemma3n": family("Gemma3nForCausalLM", "gemma3n_text", without=["rope_theta"], **GEMMA,
                      num_hidden_layers=4, intermediate_size=[48, 48, 48, 48],
                      layer_types=WINDOWS * 2, rope_parameters=GEMMA_ROPES,
                      final_logit_softcapping=8.0, vocab_size_per_layer_input=120,
                      hidden_size_per_layer_input=8, altup_active_idx=0, altup_coef_clip=120.0,
                      altup_correct_scale=True, altup_num_inputs=3, num_kv_shared_layers=2,
                      laurel_rank=4, activation_sparsity_pattern=[0.8, 0.0, 0.0, 0.0]),
    "gemma4": family("Gemma4ForCausalLM", "gemma4_text", without=["rope_theta"], **GEMMA,
                     num_hidden_layers=4, layer_types=WINDOWS * 2, global_head_dim=32,
                     rope_parameters=GEMMA4_ROPES,
                     final_logit_softcapping=8.0, vocab_size_per_layer_input=128,
                     hidden_size_per_layer_input=8, num_kv_shared_layers=2,
                     use_double_wide_mlp=True, attention_k_eq_v=False, enable_moe_block=False),
    "gemma4-large": family("Gemma4ForCausalLM", "gemma4_text", without=["rope_theta"], **GEMMA,
                           num_global_key_value_heads=1, layer_types=WINDOWS, global_head_dim=32,
                           rope_parameters=GEMMA4_ROPES,
                           final_logit_softcapping=8.0, hidden_size_per_layer_input=0,
                           num_kv_shared_layers=0, attention_k_eq_v=True, enable_moe_block=False),
    "qwen2-vl": around("Qwen2VLForConditionalGeneration", "qwen2_vl",
                       inner("qwen2_vl_text", use_sliding_window=False, sliding_window=None,
                             max_window_layers=2,
                             rope_scaling={"type": "mrope", "mrope_section": [2, 1, 1]}),
                       vision_config={"depth": 1, "embed_dim": 16, "hidden_size": 32, "num_heads": 2,
                                      "mlp_ratio": 1, "patch_size": 4, "spatial_merge_size": 2,
                                      "temporal_patch_size": 1}),
    "qwen2_5-vl": around("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl",
                         inner("qwen2_5_vl_text", use_sliding_window=False, sliding_window=None,
                               max_window_layers=2,
                               rope_scaling={"type": "mrope", "mrope_section": [2, 1, 1]}),
                         vision_config={**QWEN_VISION, "fullatt_block_indexes": [0],
                                        "window_size": 8}),
    "qwen3-vl": around("Qwen3VLForConditionalGeneration", "qwen3_vl",
                       inner("qwen3_vl_text", head_dim=16, attention_bias=False,
                             rope_scaling={"rope_type": "default", "mrope_interleaved": True,
                                           "mrope_section": [4, 2, 2]}),
                       vision_config=QWEN3_VISION),
    "llama4": family("Llama4ForCausalLM", "llama4_text", head_dim=16, intermediate_size=24,
                     intermediate_size_mlp=48, num_hidden_layers=4, moe_layers=[],
                     num_local_experts=1, num_experts_per_tok=1, interleave_moe_layer_step=8,
                     use_qk_norm=True, no_rope_layers=[1, 0, 1, 0], no_rope_layer_interval=2,
                     attention_chunk_size=32, attn_temperature_tuning=True, floor_scale=16,
                     attn_scale=0.3, attention_bias=False, router_jitter_noise=0.0,
                     output_router_logits=False, router_aux_loss_coef=0.001),
    "youtu": family("YoutuForCausalLM", "youtu", hidden_size=64, num_key_value_heads=4, q_lora_rank=32,
                    kv_lora_rank=32, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32,
                    rms_norm_eps=1e-6, attention_bias=True, rope_interleave=True,
                    rope_scaling={"type": "yarn", "factor": 8.0, "beta_fast": 32, "beta_slow": 1,
                                  "original_max_position_embeddings": 64, "mscale": 1.0,
                                  "mscale_all_dim": 0.7}),
    "gpt2": family("GPT2LMHeadModel", "gpt2", without=NOT_GPT2, n_embd=32, n_layer=2, n_head=4,
                   n_positions=512, n_inner=48, activation_function="gelu_new",
                   layer_norm_epsilon=1e-5, tie_word_embeddings=True),
    "gpt_neox": family("GPTNeoXForCausalLM", "gpt_neox", without=NOT_OLD, hidden_size=64,
                       hidden_act="gelu", layer_norm_eps=1e-5, rotary_pct=0.25,
                       rotary_emb_base=10000.0, attention_bias=True, use_parallel_residual=True),
    "gpt_neox-serial": family("GPTNeoXForCausalLM", "gpt_neox", without=NOT_OLD, hidden_act="gelu",
                              layer_norm_eps=1e-5, rotary_pct=1.0, rotary_emb_base=10000.0,
                              attention_bias=False, use_parallel_residual=False),
    "opt": family("OPTForCausalLM", "opt", without=[*NOT_OLD, "intermediate_size", "hidden_act"],
                  ffn_dim=48, word_embed_proj_dim=32, do_layer_norm_before=True,
                  activation_function="relu", enable_bias=True, tie_word_embeddings=True),
    "falcon": family("FalconForCausalLM", "falcon", without=[*NOT_OLD, "hidden_act",
                                                             "intermediate_size"],
                     ffn_hidden_size=48, activation="gelu", layer_norm_epsilon=1e-5, bias=False,
                     multi_query=True, parallel_attn=True, new_decoder_architecture=False,
                     alibi=False, rope_theta=10000.0, tie_word_embeddings=True),
    "falcon-large": family("FalconForCausalLM", "falcon", without=[*NOT_OLD, "hidden_act",
                                                                   "intermediate_size"],
                           ffn_hidden_size=48, activation="gelu", layer_norm_epsilon=1e-5,
                           bias=True, num_kv_heads=2, new_decoder_architecture=True, alibi=False,
                           rope_theta=10000.0, tie_word_embeddings=True),
    "falcon-rw": family("FalconForCausalLM", "falcon", without=[*NOT_OLD, "hidden_act",
                                                                "intermediate_size"],
                        num_attention_heads=16, ffn_hidden_size=48, activation="gelu",
                        layer_norm_epsilon=1e-5, bias=True, multi_query=False, parallel_attn=False,
                        new_decoder_architecture=False, alibi=True, tie_word_embeddings=True),
    "bloom": family("BloomForCausalLM", "bloom",
                    without=[*NOT_OLD, "hidden_act", "intermediate_size", "num_hidden_layers",
                             "num_attention_heads", "max_position_embeddings"],
                    hidden_size=24, n_layer=2, n_head=6, layer_norm_epsilon=1e-5, seq_length=512,
                    tie_word_embeddings=True),
    "mpt": family("MptForCausalLM", "mpt", without=NOT_GPT2, d_model=24, n_layers=2, n_heads=3,
                  max_seq_len=512, expansion_ratio=4, layer_norm_epsilon=1e-5, no_bias=True,
                  attn_config={"alibi": True, "alibi_bias_max": 8, "clip_qkv": 1.5,
                               "softmax_scale": None, "attn_type": "multihead_attention"},
                  tie_word_embeddings=True),
    "bitnet": family("BitNetForCausalLM", "bitnet", hidden_act="relu2", attention_bias=False,
                     tie_word_embeddings=True),
    "phi": family("PhiForCausalLM", "phi", without=["rms_norm_eps"], num_key_value_heads=4,
                  hidden_size=64, layer_norm_eps=1e-5, hidden_act="gelu_new",
                  partial_rotary_factor=0.5, qk_layernorm=False, resid_pdrop=0.0, embd_pdrop=0.0),
    "olmo": family("OlmoForCausalLM", "olmo", without=["rms_norm_eps"], attention_bias=False,
                   clip_qkv=1.5),
    "gptj": family("GPTJForCausalLM", "gptj", without=NOT_GPT2, n_embd=64, n_layer=2, n_head=4,
                   n_positions=512, n_inner=None, rotary_dim=8, activation_function="gelu_new",
                   layer_norm_epsilon=1e-5),
    "gpt_bigcode": family("GPTBigCodeForCausalLM", "gpt_bigcode", without=NOT_GPT2, n_embd=32,
                          n_layer=2, n_head=4, n_positions=512, n_inner=48, multi_query=True,
                          activation_function="gelu_pytorch_tanh", layer_norm_epsilon=1e-5,
                          tie_word_embeddings=True),
    "exaone": family("ExaoneForCausalLM", "exaone",
                     without=["rms_norm_eps", "num_hidden_layers", "hidden_act"], num_layers=2,
                     activation_function="silu", layer_norm_epsilon=1e-5,
                     rope_scaling=LLAMA3),
    "internlm2": family("InternLM2ForCausalLM", "internlm2", bias=False,
                        rope_scaling={"type": "dynamic", "factor": 6.0},
                        max_position_embeddings=64),
    "minicpm": family("MiniCPMForCausalLM", "minicpm", scale_emb=12, scale_depth=1.4,
                      dim_model_base=8),
    "baichuan": family("BaiChuanForCausalLM", "baichuan", without=["num_key_value_heads"]),
    "baichuan-13b": family("BaichuanForCausalLM", "baichuan", num_attention_heads=6, hidden_size=24,
                           without=["num_key_value_heads", "max_position_embeddings"],
                           model_max_length=512),
    "baichuan2": family("BaichuanForCausalLM", "baichuan", without=["num_key_value_heads"],
                        model_max_length=512, norm_head=True),
    "chatglm": family("ChatGLMModel", "chatglm",
                      without=["vocab_size", "intermediate_size", "num_hidden_layers",
                               "num_key_value_heads", "max_position_embeddings", "rope_theta",
                               "rms_norm_eps", "hidden_act"],
                      padded_vocab_size=128, ffn_hidden_size=48, num_layers=2, kv_channels=16,
                      multi_query_attention=True, multi_query_group_num=2, seq_length=512,
                      rope_ratio=50, layernorm_epsilon=1e-5, add_qkv_bias=True,
                      add_bias_linear=False, rmsnorm=True, post_layer_norm=True,
                      original_rope=True, apply_residual_connection_post_layernorm=False),
    "opt-350m": family("OPTForCausalLM", "opt", without=[*NOT_OLD, "intermediate_size", "hidden_act"],
                       ffn_dim=48, word_embed_proj_dim=16, do_layer_norm_before=False,
                       activation_function="relu", enable_bias=True, tie_word_embeddings=True),
    "bitnet-online": family("BitNetForCausalLM", "bitnet", hidden_act="relu2", attention_bias=False,
                            tie_word_embeddings=False,
                            quantization_config={"quant_method": "bitnet",
                                                 "linear_class": "autobitlinear",
                                                 "quantization_mode": "online"}),
    "gpt_neo": family("GPTNeoForCausalLM", "gpt_neo",
                      without=[*NOT_OLD, "num_hidden_layers", "num_attention_heads", "hidden_act"],
                      num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
                      window_size=24, activation_function="gelu_new", layer_norm_epsilon=1e-5,
                      resid_dropout=0.0, embed_dropout=0.0, tie_word_embeddings=True),
    "nanochat": family("NanoChatForCausalLM", "nanochat", hidden_act="relu2", attention_bias=False,
                       final_logit_softcapping=8.0),
    "cwm": family("CwmForCausalLM", "cwm", bos_token_id=1, head_dim=16, sliding_window=24,
                  layer_types=WINDOWS,
                  rope_scaling=LLAMA3),
    "minicpm3": family("MiniCPM3ForCausalLM", "minicpm3", hidden_size=64, num_key_value_heads=4,
                       q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=32, qk_rope_head_dim=16,
                       v_head_dim=32, scale_emb=12, scale_depth=1.4, dim_model_base=16,
                       attention_bias=False),
    "diffllama": family("DiffLlamaForCausalLM", "diffllama", attention_bias=False, num_hidden_layers=3,
                        num_attention_heads=8, num_key_value_heads=4, head_dim=8,
                        lambda_std_dev=0.1),
    "hyperclovax": family("HyperCLOVAXForCausalLM", "hyperclovax", attention_bias=False, mlp_bias=False,
                          embedding_multiplier=3.0, logits_scaling=0.5, residual_multiplier=0.7,
                          attention_multiplier=0.2, use_post_norm=True),
    "granite_swa": family("GraniteSWAForCausalLM", "granite_swa", **GRANITE, mlp_bias=False, sliding_window=24, num_hidden_layers=3,
                          layer_types=["full_attention", "sliding_attention", "sliding_attention"],
                          layer_rope_theta=[0, 10000.0, 10000.0]),
    "jais2": family("Jais2ForCausalLM", "jais2", without=["rms_norm_eps"], layer_norm_eps=1e-5,
                    hidden_act="relu2", head_dim=8, attention_bias=True, mlp_bias=True),
    "glm4v": around("Glm4vForConditionalGeneration", "glm4v",
                    inner("glm4v_text", hidden_size=64, attention_bias=True,
                          rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                                           "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]}),
                    vision_config={"depth": 1, "hidden_size": 16, "num_heads": 2, "image_size": 8,
                                   "patch_size": 4, "out_hidden_size": 64, "intermediate_size": 16,
                                   "spatial_merge_size": 2, "temporal_patch_size": 1}),
    "doge": family("DogeForCausalLM", "doge", attention_bias=False, mlp_bias=False, hidden_dropout=0.0,
                   sliding_window=None, keep_window_size=512, is_moe=False),
    "granite4": family("GraniteMoeHybridForCausalLM", "granitemoehybrid", **GRANITE,
                       num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=64,
                       position_embedding_type="rope", layer_types=["attention"] * 2,
                       mamba_n_heads=4, mamba_d_head=16),
    "gemma4-unified": family("Gemma4UnifiedForCausalLM", "gemma4_unified_text",
                             without=["rope_theta"], **GEMMA, num_hidden_layers=3,
                             layer_types=[*WINDOWS, "full_attention"], global_head_dim=32,
                             num_global_key_value_heads=1, attention_k_eq_v=True,
                             rope_parameters=GEMMA4_ROPES,
                             final_logit_softcapping=8.0, num_kv_shared_layers=0,
                             use_double_wide_mlp=False),
    "apertus1p5": family("Apertus1p5TextForCausalLM", "apertus1p5_text", hidden_act="xielu",
                         attention_bias=False, output_vocab_size=112,
                         rope_parameters={**LLAMA3, "rope_theta": 10000.0}),
    "maincoder": family("MaincoderForCausalLM", "maincoder", head_dim=16, attention_bias=False),
    "orion": family("OrionForCausalLM", "orion", attention_bias=False),
    "internlm": family("InternLMForCausalLM", "internlm", bias=True),
    "mllama": around("MllamaForConditionalGeneration", "mllama",
                     inner("mllama_text_model", bos_token_id=1, num_hidden_layers=3,
                           cross_attention_layers=[1],
                           rope_scaling={**LLAMA3, "rope_theta": 10000.0}),
                     vision_config={"model_type": "mllama_vision_model", "hidden_size": 16,
                                    "intermediate_size": 16, "num_hidden_layers": 1,
                                    "num_global_layers": 1, "attention_heads": 2, "image_size": 8,
                                    "patch_size": 4, "vision_output_dim": 32, "max_num_tiles": 1,
                                    "intermediate_layers_indices": [0],
                                    "supported_aspect_ratios": [[1, 1]]}),
    "cohere_compass": family("CohereCompassForCausalLM", "cohere_compass_text",
                             without=["rms_norm_eps", "rope_theta"], layer_norm_eps=1e-5,
                             head_dim=16, logit_scale=0.5, sliding_window=24, layer_types=WINDOWS,
                             attention_bias=False, tie_word_embeddings=True,
                             rope_parameters={"full_attention": None, "sliding_attention": {
                                 "rope_type": "default", "rope_theta": 10000.0,
                                 "mrope_section": [2, 3, 3]}}),
    "spark": family("Spark2_5ForCausalLM", "spark2_5", without=["rope_theta"], head_dim=16,
                    hidden_act="gelu", headwise_attn_output_gate=True, gate_attn_act_mode="sigmoid",
                    attention_bias=False, mlp_bias=False, sliding_window=24, layer_types=WINDOWS,
                    rope_parameters={
                        "full_attention": {"rope_theta": 50000.0, "partial_rotary_factor": 0.25},
                        "sliding_attention": {"rope_theta": 1000.0, "partial_rotary_factor": 1.0}}),
    "muse_glimmer": around(
        "MuseGlimmerForConditionalGeneration", "muse_glimmer",
        inner("muse_glimmer_text", head_dim=16, hidden_activation="silu", sliding_window=24,
              layer_types=WINDOWS, layer_rope_theta=[10000.0, 0], qk_scale_factor=1.5,
              output_multiplier=0.7, final_logit_softcapping=20.0, post_norm_eps=1e-8,
              attention_bias=False),
        vision_config={"model_type": "muse_glimmer_vision", "hidden_size": 16, "intermediate_size": 16,
                       "num_hidden_layers": 1, "num_attention_heads": 2, "patch_size": 4,
                       "pos_emb_height": 2, "pos_emb_width": 2, "max_position_embeddings": 4},
        image_token_id=200, video_token_id=201, out_hidden_size=64, projector_hidden_size=16),
    "nanbeige": family("NanbeigeForCausalLM", "nanbeige", head_dim=16, num_loops=2,
                       skip_loop_final_norm=False, attention_bias=False, mlp_bias=False),
    # Stages may begin with the layers before those whose keys others read.
    "gemma3n-deep": family("Gemma3nForCausalLM", "gemma3n_text", without=["rope_theta"], **GEMMA,
                           num_hidden_layers=6, intermediate_size=[48] * 6,
                           layer_types=WINDOWS * 3, rope_parameters=GEMMA_ROPES,
                           final_logit_softcapping=8.0, vocab_size_per_layer_input=120,
                           hidden_size_per_layer_input=6, altup_active_idx=1, altup_coef_clip=120.0,
                           altup_correct_scale=True, altup_num_inputs=3, num_kv_shared_layers=2,
                           laurel_rank=4,
                           activation_sparsity_pattern=[0.8, 0.0, 0.8, 0.0, 0.0, 0.0]),
    "gemma4-deep": family("Gemma4ForCausalLM", "gemma4_text", without=["rope_theta"], **GEMMA,
                          num_hidden_layers=6, layer_types=WINDOWS * 3, global_head_dim=32,
                          rope_parameters=GEMMA4_ROPES,
                          final_logit_softcapping=8.0, vocab_size_per_layer_input=128,
                          hidden_size_per_layer_input=8, num_kv_shared_layers=2,
                          use_double_wide_mlp=True, attention_k_eq_v=False, enable_moe_block=False),
}

MODELS |= wrapped_models.models(inner, around)
MODELS |= named_families.models(family, NOT_GPT2)
VARIANTS = {name: {"default": ({}, LENGTH)} for name in MODELS}
VARIANTS["exaone4"]["full"] = ({"sliding_window": None, "layer_types": ["full_attention"] * 2},
                               LENGTH)
VARIANTS["granite4"]["without-positions"] = ({"position_embedding_type": None}, LENGTH)
VARIANTS["llama4"]["yarn"] = ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                                                "original_max_position_embeddings": 64}}, LENGTH)
VARIANTS["youtu"]["halves"] = ({"rope_interleave": False, "rope_scaling": None}, LENGTH)

# What computes the same where transformers has no class of the name.
_LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
REFERENCES = {
    "mimo": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"},
    "internlm3": {**_LLAMA, "attention_bias": True},
    "deci": {**_LLAMA, "num_key_value_heads": 4, "intermediate_size": 256},
    "exaone": {**_LLAMA, "num_hidden_layers": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5},
    "internlm2": _LLAMA,
    "minicpm": {"architectures": ["GraniteForCausalLM"], "model_type": "granite",
                "embedding_multiplier": 12.0, "residual_multiplier": 1.4 / 2**0.5,
                "logits_scaling": 4.0, "attention_multiplier": 8**-0.5},
    "baichuan": _LLAMA, "baichuan2": _LLAMA,
    "baichuan-13b": {**_LLAMA, "max_position_embeddings": 512},
    "chatglm": {"architectures": ["GlmForCausalLM"], "model_type": "glm", "vocab_size": 128,
                "intermediate_size": 48, "num_hidden_layers": 2, "num_key_value_heads": 2,
                "head_dim": 16, "max_position_embeddings": 512, "rope_theta": 500000.0,
                "rms_norm_eps": 1e-5, "hidden_act": "silu", "attention_bias": True,
                "partial_rotary_factor": 0.5},
    "bitnet-online": {"quantization_config": None},
    "maincoder": {"architectures": ["HunYuanDenseV1ForCausalLM"], "model_type": "hunyuan_v1_dense"},
    "orion": {"architectures": ["StableLmForCausalLM"], "model_type": "stablelm",
              "layer_norm_eps": 1e-5, "partial_rotary_factor": 1.0, "use_qkv_bias": False,
              "use_parallel_residual": False, "qk_layernorm": False},
    "internlm": {**_LLAMA, "attention_bias": True},
    "spark": {"architectures": ["LagunaForCausalLM"], "model_type": "laguna", "gating": "per-head",
              "mlp_layer_types": ["dense", "dense"],
              "rope_parameters": {
                  "full_attention": {"rope_type": "default", "rope_theta": 50000.0,
                                     "partial_rotary_factor": 0.25},
                  "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0,
                                        "partial_rotary_factor": 1.0}}},
    "nanbeige": _LLAMA,
    **wrapped_models.references(inner), **named_families.REFERENCES,
}
# Gates of a reference's heads are sigmoids, and queries and keys have no norms.
SIGMOID_GATES = ("spark",)
# Scores of a reference fall with distance (ALiBi).
FALLING = ("baichuan-13b", "jais")
# The output matrix of a reference has rows of length 1.
NORMED_HEADS = ("baichuan2",)
# Matrices of layers become -1, 0 and 1 times the mean of their magnitudes, and rows that they
# multiply are rounded.
TERNARY = ("bitnet-online",)

# Families whose first draw is too badly conditioned for bf16.
OTHER_SEEDS = {"olmo2": 1100, "gemma4": 2100, "gpt2": 99, "gpt_neox": 99, "gpt_neox-serial": 99, "opt": 99,
               "falcon": 99, "falcon-large": 99, "falcon-rw": 99, "bloom": 99, "mpt": 99,
               "bitnet": 99, "gemma3n": 305, "gptj": 99, "gpt_neo": 99, "gpt_bigcode": 99, "opt-350m": 299,
               "bitnet-online": 199, "muse_glimmer": 299, "ouro": 299}


def is_tied(config):
    inner = config.get("text_config", config)
    return inner.get("tie_word_embeddings", config["tie_word_embeddings"])


OFFSET_NORMS = ("minimax_m3", "gemma", "vaultgemma", "nemotron", "step3p7", "muse_glimmer", "qwen3_next", "qwen3_5", "qwen3_5_moe")


def random_weight(name, weight, config):
    """Wide enough that logits vary by several units and that every layer matters. Where the output
    matrix is the embedding, layers must outweigh it, or each token would only repeat itself."""
    tied = is_tied(config)
    kind = config["model_type"]
    short = name.removesuffix(".weight").rsplit(".", 1)[-1]
    if short in ("beta", "eps"):
        return weight
    if short in ("alpha_p", "alpha_n"):
        return torch.rand_like(weight) - 0.3
    if short == "layer_scalar":
        return torch.rand_like(weight) * 0.5 + 0.75
    if short == "correct_output_scale":
        return torch.rand_like(weight) + 0.5
    if name.endswith(".bias") or short.startswith("lambda_"):
        return torch.randn_like(weight) * 0.3
    if short == "A":
        return torch.rand_like(weight) - 0.25
    if kind in ("gemma3n_text", "gemma4_text") and ("q_norm" in name or "k_norm" in name):
        return (torch.rand_like(weight) + 0.5) * 0.3  # scores are not scaled
    if weight.dim() == 1 or "norm" in name:
        plain = kind == "muse_glimmer" and "language_model.norm" in name
        center = 0.0 if kind in OFFSET_NORMS and not plain else 1.0
        if tied and name.endswith(("model.norm.weight", "ln_f.weight", "norm_f.weight", "decoder.final_layer_norm.weight")):
            center += 2.0
        if kind.startswith("gemma") and ("post_attention" in name or "post_feedforward" in name):
            center += 2.0
        return torch.rand_like(weight) - 0.5 + center
    if short in ("wpe", "embed_positions", "positions_embed"):
        return torch.randn_like(weight) * 0.25
    if kind.startswith("minicpm") and short == "embed_tokens":
        return torch.randn_like(weight) * 0.1  # times scale_emb
    if short in ("embed_tokens", "embed_in", "wte", "word_embeddings", "tok_embeddings", "embedding", "token_embeddings", "tokens_embed") or \
            "embed_tokens" in name:
        return torch.randn_like(weight) * (0.25 if tied else 1.0)
    scale = 4.0 if "lm_head" in name or "embed_out" in name or "output" in short else 0.3 if "altup" in name else 1.0
    if kind.startswith(("gemma", "vaultgemma")) and ("q_proj" in name or "k_proj" in name):
        scale = 0.7
    if tied and not kind.startswith("gemma") and short in (
            "o_proj", "down_proj", "c_proj", "out_proj", "fc2", "dense", "dense_4h_to_h"):
        scale = 3.0 if kind != "vaultgemma" else 2.0
    if short in ("project_in", "project_out"):
        scale = 3.0
    if kind == "granite" and short == "down_proj":
        scale = 2.0
    inputs = weight.shape[0] if kind in ("gpt2", "openai-gpt", "jais") else weight[0].numel()
    return torch.randn_like(weight) * scale * inputs ** -0.5
