"""The part of families.py whose decoders lie in models around them, as text_part.cpp reads them."""

VISION = {"hidden_size": 16, "intermediate_size": 16, "patch_size": 4, "spatial_merge_size": 2,
          "temporal_patch_size": 1}


# Where a class ties the output matrix to the embedding unless its own part says otherwise.
APART = {"tie_word_embeddings": False}


def models(inner, around):
    """As MODELS of families.py, by its functions."""
    sections = {"rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]}
    return {
        "internvl_chat": {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat",
                          "torch_dtype": "bfloat16", "tie_word_embeddings": False,
                          "llm_config": inner("qwen3", head_dim=16, attention_bias=False,
                                              use_sliding_window=False)},
        "glm_ocr": around("GlmOcrForConditionalGeneration", "glm_ocr",
                          inner("glm_ocr_text", head_dim=16, hidden_size=64,
                                rope_parameters={"rope_type": "default", **sections}),
                          vision_config={**VISION, "depth": 1, "num_heads": 2, "image_size": 8,
                                         "out_hidden_size": 64}),
        "hunyuan_vl": around("HunYuanVLForConditionalGeneration", "hunyuan_vl",
                             inner("hunyuan_vl_text", head_dim=16, attention_bias=False,
                                   rope_scaling={"type": "xdrope", "alpha": 50.0, "factor": 1.0,
                                                 "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                                                 "mscale_all_dim": 1.0,
                                                 "xdrope_section": [2, 2, 2, 2]}) | APART,
                             vision_config={**VISION, "num_hidden_layers": 1,
                                            "num_attention_heads": 2, "out_hidden_size": 32,
                                            "text_hidden_size": 32, "max_image_size": 32}),
    }


def references(inner):
    """As REFERENCES of families.py."""
    return {"internvl_chat": {**inner("qwen3", head_dim=16, attention_bias=False),
                              "architectures": ["Qwen3ForCausalLM"]}}
