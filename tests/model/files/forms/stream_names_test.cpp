#include "model/files/forms/stream_names.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(StreamNames, AreFoundByTheLastConnection) {
  std::map<std::string, const TensorView*> tensors = {{"hc_head_fn", nullptr}};
  EXPECT_FALSE(has_own_stream_names(tensors));
  tensors["model.hc_head.hc_fn"] = nullptr;
  EXPECT_TRUE(has_own_stream_names(tensors));
}

TEST(StreamNames, BecomeThoseOfPublishedFiles) {
  const struct {
    const char* own;
    const char* published;
  } names[] = {
      {"head.weight", "head.weight"},
      {"lm_head.weight", "head.weight"},
      {"model.embed_tokens.weight", "embed.weight"},
      {"model.hc_head.hc_base", "hc_head_base"},
      {"model.norm.weight", "norm.weight"},
      {"model.layers.3.attn.norm.weight", "layers.3.attn.kv_norm.weight"},
      {"model.layers.3.attn.compressor.norm.weight", "layers.3.attn.compressor.norm.weight"},
      {"model.layers.12.ffn.gate.tid2eid", "layers.12.ffn.gate.tid2eid"},
      {"model.layers.3.attn_hc.fn", "layers.3.hc_attn_fn"},
      {"model.layers.3.ffn_hc.scale", "layers.3.hc_ffn_scale"},
      {"model.layers.3.input_layernorm.weight", "layers.3.attn_norm.weight"},
      {"model.layers.3.mlp.gate.weight", "layers.3.ffn.gate.weight"},
      {"model.layers.3.mlp.gate.tid2eid", "layers.3.ffn.gate.tid2eid"},
      {"model.layers.3.mlp.gate.e_score_correction_bias", "layers.3.ffn.gate.bias"},
      {"model.layers.3.mlp.experts.gate_up_proj", "layers.3.ffn.experts.gate_up_proj"},
      {"model.layers.3.mlp.experts.down_proj", "layers.3.ffn.experts.w2"},
      {"model.layers.3.mlp.shared_experts.up_proj.weight", "layers.3.ffn.shared_experts.w3.weight"},
      {"model.layers.3.self_attn.q_a_norm.weight", "layers.3.attn.q_norm.weight"},
      {"model.layers.3.self_attn.kv_norm.weight", "layers.3.attn.kv_norm.weight"},
      {"model.layers.3.self_attn.sinks", "layers.3.attn.attn_sink"},
      {"model.layers.3.self_attn.compressor.position_bias", "layers.3.attn.compressor.ape"},
      {"model.layers.3.self_attn.compressor.indexer.kv_norm.weight",
       "layers.3.attn.indexer.compressor.norm.weight"},
      {"model.layers.3.self_attn.compressor.indexer.scorer.weights_proj.weight",
       "layers.3.attn.indexer.weights_proj.weight"},
      {"model.layers.3.self_attn.compressor.indexer.q_b_proj.weight",
       "layers.3.attn.indexer.wq_b.weight"},
  };
  for (const auto& [own, published] : names) EXPECT_EQ(published_stream_name(own), published);
}

// As transformers 5.24 saves Hy4.
TEST(StreamNames, MovedPiecesGoBack) {
  const struct {
    const char* moved;
    const char* published;
  } names[] = {
      {"model.hc_pre.hc_head.hc_head_fn", "model.hc_head.hc_head_fn"},
      {"model.layers.3.hc_pre.hc_attn_layer.hc_base",
       "model.layers.3.hc_attn_layer.hc_pre.hc_base"},
      {"model.layers.3.hc_pre.hc_mlp_layer.hc_scale",
       "model.layers.3.hc_mlp_layer.hc_pre.hc_scale"},
      {"model.layers.3.mlp.linear_gate.weight", "model.layers.3.mlp.gate_proj.weight"},
      {"model.layers.3.mlp.shared_experts.linear_gate.weight",
       "model.layers.3.mlp.shared_experts.gate_proj.weight"},
      {"model.layers.3.self_attn.linear_gate.weight",
       "model.layers.3.self_attn.linear_gate.weight"},
  };
  std::map<std::string, const TensorView*> tensors;
  for (const auto& [moved, published] : names) {
    EXPECT_EQ(unmoved_stream_name(moved), published);
    EXPECT_EQ(unmoved_stream_name(published), published);
    tensors[published] = nullptr;
  }
  EXPECT_FALSE(has_moved_stream_names(tensors));
  tensors["model.hc_pre.hc_head.hc_head_fn"] = nullptr;
  EXPECT_TRUE(has_moved_stream_names(tensors));
}

}  // namespace
}  // namespace foretoken
