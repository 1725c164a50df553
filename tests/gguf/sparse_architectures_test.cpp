#include "gguf/sparse_architectures.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken {
namespace {

const GgufArchitecture& sparse(std::string_view name) {
  const auto all = sparse_gguf_architectures();
  return *std::find_if(all.begin(), all.end(),
                       [&](const GgufArchitecture& each) { return each.name == name; });
}

void expect_names(const GgufArchitecture& architecture, std::string_view theirs,
                  std::string_view ours) {
  EXPECT_EQ(hf_tensor_name(architecture, theirs), ours);
  EXPECT_EQ(gguf_tensor_name(architecture, ours), theirs);
}

TEST(SparseArchitectures, ArePartOfTheWhole) {
  const auto all = gguf_architectures();
  for (const GgufArchitecture& architecture : sparse_gguf_architectures()) {
    EXPECT_EQ(std::count_if(all.begin(), all.end(),
                            [&](const auto& other) { return other.name == architecture.name; }),
              1)
        << architecture.name;
  }
}

TEST(SparseArchitectures, IndexersAndExpertsHaveNamesOfTheirOwn) {
  const GgufArchitecture& m3 = sparse("minimax-m3");
  expect_names(m3, "blk.4.indexer.q_proj.weight", "model.layers.4.self_attn.index_q_proj.weight");
  expect_names(m3, "blk.4.indexer.k_norm.weight", "model.layers.4.self_attn.index_k_norm.weight");
  expect_names(m3, "blk.4.ffn_down_shexp.weight",
               "model.layers.4.block_sparse_moe.shared_experts.down_proj.weight");
  expect_names(m3, "blk.0.attn_q_norm.weight", "model.layers.0.self_attn.q_norm.weight");
  EXPECT_TRUE(m3.whole_norms);
}

TEST(SparseArchitectures, EntriesAndStreamsHaveNamesOfTheirOwn) {
  const GgufArchitecture& v4 = sparse("deepseek4");
  expect_names(v4, "token_embd.weight", "embed.weight");
  expect_names(v4, "output_hc_scale.weight", "hc_head_scale");
  expect_names(v4, "blk.2.attn_sinks.weight", "layers.2.attn.attn_sink");
  expect_names(v4, "blk.2.attn_compressor_ape.weight", "layers.2.attn.compressor.ape");
  expect_names(v4, "blk.2.attn_compressor_norm.weight", "layers.2.attn.compressor.norm.weight");
  expect_names(v4, "blk.2.indexer_compressor_gate.weight",
               "layers.2.attn.indexer.compressor.wgate.weight");
  expect_names(v4, "blk.2.hc_ffn_fn.weight", "layers.2.hc_ffn_fn");
  expect_names(v4, "blk.0.ffn_gate_tid2eid.weight", "layers.0.ffn.gate.tid2eid");
  expect_names(v4, "blk.3.exp_probs_b.bias", "layers.3.ffn.gate.bias");
  expect_names(v4, "blk.3.ffn_up_exps.weight", "layers.3.ffn.experts.w3.weight");
  EXPECT_FALSE(gguf_tensor_name(v4, "layers.3.input_layernorm.weight").has_value());
}

}  // namespace
}  // namespace foretoken
