"""The part of mixtures.py that was made last. Those of Molmo 2 are no mixtures: transformers writes their files."""

import families

MOLMO = {"hidden_size": 64, "intermediate_size": 64, "head_dim": 16, "additional_vocab_size": 8, "rms_norm_eps": 1e-6}
MOLMO_VISION = {
    "vision_config": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
                      "num_key_value_heads": 2, "head_dim": 8, "patch_size": 4, "num_position_embeddings": 4,
                      "image_size": [8, 8]},
    "adapter_config": {"hidden_size": 16, "intermediate_size": 16, "text_hidden_size": 64, "num_attention_heads": 2,
                       "num_key_value_heads": 2, "head_dim": 8, "vision_feature_layer": [-1, -2]}}


def models(mixture):
    """As MODELS of mixtures.py, by its function."""
    return {
        "aria_text": mixture("AriaTextForCausalLM", "aria_text", intermediate_size=32, moe_num_experts=8,
                             moe_topk=3, moe_num_shared_experts=2, attention_bias=False, mlp_bias=False),
        "ernie4_5_vl_moe": families.around(
            "Ernie4_5_VLMoeForConditionalGeneration", "ernie4_5_vl_moe",
            families.inner("ernie4_5_vl_moe_text", hidden_size=64, intermediate_size=64,
                           num_hidden_layers=3, moe_intermediate_size=[32, 16], moe_num_experts=8, moe_k=2,
                           moe_num_shared_experts=2, moe_norm_min=1e-12, use_bias=False,
                           mlp_layer_types=["dense", "sparse", "sparse"],
                           rope_parameters={"rope_type": "default", "rope_theta": 500000.0, "mrope_section": [3, 3, 2]}),
            vision_config={"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 2, "patch_size": 4}),
        "molmo2": families.around("Molmo2ForConditionalGeneration", "molmo2",
                                  families.inner("molmo2_text", **MOLMO, attention_bias=True), **MOLMO_VISION),
        "molmo2-o": families.around("Molmo2ForConditionalGeneration", "molmo2",
                                    families.inner("molmo2_text", **MOLMO, attention_bias=False, qk_norm_type="olmo",
                                                   norm_after=True, rope_scaling_layers=[1],
                                                   rope_parameters=families.yarn()), **MOLMO_VISION),
    }
