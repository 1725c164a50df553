"""The part of families.py whose checkpoints have fields and names of their own, as those of early
models do; what computes them is a class of transformers under other names.
"""

NOT_OPENELM = ["hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
               "intermediate_size", "max_position_embeddings", "rope_theta", "hidden_act",
               "rms_norm_eps"]
NOT_TELECHAT = ["num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings",
                "rope_theta", "hidden_act", "rms_norm_eps"]


def models(family, not_gpt2):
    """As MODELS of families.py, by its functions."""
    return {
        "qwen": family("QWenLMHeadModel", "qwen", without=["rms_norm_eps", "rope_theta"],
                       num_key_value_heads=4, intermediate_size=96, kv_channels=8, seq_length=512,
                       max_position_embeddings=2048, layer_norm_epsilon=1e-5, no_bias=True,
                       rotary_emb_base=10000, rotary_pct=1.0, use_dynamic_ntk=True,
                       use_logn_attn=True),
        "codegen": family("CodeGenForCausalLM", "codegen", without=not_gpt2, n_embd=32, n_layer=2,
                          n_head=4, n_positions=512, n_ctx=512, n_inner=48, rotary_dim=4,
                          activation_function="gelu_new", layer_norm_epsilon=1e-5),
        "jais": family("JAISLMHeadModel", "jais", without=not_gpt2, n_embd=32, n_layer=2, n_head=4,
                       n_positions=512, n_inner=48, activation_function="swiglu",
                       position_embedding_type="alibi", layer_norm_epsilon=1e-5,
                       mup_embeddings_scale=2.5, mup_output_alpha=2.2, mup_width_scale=0.5,
                       mup_scale_qk_dot_by_d=True),
        "openai_gpt": family("OpenAIGPTLMHeadModel", "openai-gpt", without=not_gpt2, n_embd=32,
                             n_layer=2, n_head=4, n_positions=512, afn="gelu",
                             layer_norm_epsilon=1e-5, tie_word_embeddings=True),
        "openelm": family("OpenELMForCausalLM", "openelm", without=NOT_OPENELM, model_dim=32,
                          num_transformer_layers=2, num_query_heads=[2, 4], num_kv_heads=[1, 2],
                          head_dim=16, ffn_multipliers=[1.0, 1.5], ffn_dim_divisor=16,
                          ffn_with_glu=True, max_context_length=512, rope_freq_constant=10000,
                          activation_fn_name="swish", normalize_qk_projections=True,
                          normalization_layer_name="rms_norm", share_input_output_layers=False),
        "kormo": family("KORMoForCausalLM", "kormo", head_dim=8, attention_bias=False),
        "telechat": family("TeleChat2ForCausalLM", "telechat", without=NOT_TELECHAT, n_layer=2, n_head=4,
                           num_key_value_heads=2, ffn_hidden_size=48, layer_norm_epsilon=1e-5, training_seqlen=512,
                           base_seqlen=256, seq_length=512, embed_layernorm=False, logn=False,
                           apply_residual_connection_post_layernorm=False),
        "ouro": family("OuroForCausalLM", "ouro", total_ut_steps=2, early_exit_threshold=1.0),
        "molmo": family("MolmoForCausalLM", "molmo", without=["rms_norm_eps", "hidden_act"], intermediate_size=96,
                        vocab_size=120, embedding_size=128, layer_norm_eps=1e-5, layer_norm_type="rms", norm_after=True,
                        attention_layer_norm=True, qkv_bias=False, clip_qkv=None, weight_tying=False,
                        use_position_ids=True),
    }


REFERENCES = {
    "qwen": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "intermediate_size": 48,
             "rms_norm_eps": 1e-5, "rope_theta": 10000.0},
    "openelm": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 32,
                "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                "intermediate_size": 48, "max_position_embeddings": 512, "rope_theta": 10000.0,
                "hidden_act": "silu", "rms_norm_eps": 1e-6, "attention_bias": False},
    "jais": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
             "activation_function": "silu"},
    "kormo": {"architectures": ["LlamaForCausalLM"], "model_type": "llama"},
    "telechat": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2,
                 "num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": 512,
                 "rope_theta": 10000.0 * 3 ** (8 / 6), "hidden_act": "silu", "rms_norm_eps": 1e-5,
                 "attention_bias": True, "mlp_bias": True},
    "ouro": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_loops": 2},
    "molmo": {"architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "intermediate_size": 48, "vocab_size": 128,
              "rms_norm_eps": 1e-5, "hidden_act": "silu"},
}

# As of checkpoint_names.py.
REPLACED = {
    "qwen": [("model.embed_tokens", "transformer.wte"), ("model.norm.", "transformer.ln_f."),
             ("model.layers.", "transformer.h."), ("self_attn.", "attn."), ("o_proj", "c_proj"),
             ("gate_proj", "w2"), ("up_proj", "w1"), ("down_proj", "c_proj"),
             ("input_layernorm", "ln_1"), ("post_attention_layernorm", "ln_2")],
    "openelm": [("model.embed_tokens", "transformer.token_embeddings"),
                ("model.", "transformer."), ("self_attn.", "attn."), ("mlp.", "ffn."),
                ("o_proj", "out_proj"), ("down_proj", "proj_2"), ("input_layernorm", "attn_norm"),
                ("post_attention_layernorm", "ffn_norm")],
    "telechat": [("model.embed_tokens", "transformer.word_embeddings"), ("model.norm.", "transformer.ln_f."),
                 ("model.layers.", "transformer.h."), ("self_attn.", "self_attention."), ("q_proj", "query"),
                 ("o_proj", "dense")],
    "kormo": [("input_layernorm", "pre_attention_layernorm"),
              ("post_attention_layernorm", "pre_mlp_layernorm")],
    "ouro": [("self_attn.o_proj.0.", "self_attn.o_proj."),
             ("self_attn.o_proj.1.", "input_layernorm_2."),
             ("mlp.down_proj.0.", "mlp.down_proj."),
             ("mlp.down_proj.1.", "post_attention_layernorm_2.")],
    # Ups come before gates.
    "molmo": [("model.embed_tokens.weight", "model.transformer.wte.embedding"),
              ("model.norm.", "model.transformer.ln_f."), ("model.layers.", "model.transformer.blocks."),
              ("lm_head.", "model.transformer.ff_out."), ("self_attn.", ""), ("mlp.", ""), ("o_proj", "attn_out"),
              ("gate_proj", "other_proj"), ("up_proj", "gate_proj"), ("other_proj", "up_proj"),
              ("down_proj", "ff_out"), ("post_attention_layernorm", "attn_norm"),
              ("post_feedforward_layernorm", "ff_norm")],
}

# Classes of transformers that keep no keys and values.
WITHOUT_CACHE = ("openai_gpt",)
# Rows of the longer prompt that are stored, where bf16 moves some by more than a hundredth.
STORED_ROWS = {"openelm": 2}
