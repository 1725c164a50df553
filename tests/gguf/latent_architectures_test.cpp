#include "gguf/latent_architectures.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken {
namespace {

const GgufArchitecture& latent(std::string_view name) {
  const auto all = latent_gguf_architectures();
  return *std::find_if(all.begin(), all.end(),
                       [&](const GgufArchitecture& each) { return each.name == name; });
}

TEST(LatentArchitectures, ArePartOfTheWhole) {
  const auto all = gguf_architectures();
  for (const GgufArchitecture& architecture : latent_gguf_architectures()) {
    EXPECT_EQ(std::count_if(all.begin(), all.end(),
                            [&](const auto& other) { return other.name == architecture.name; }),
              1)
        << architecture.name;
  }
}

TEST(LatentArchitectures, IndexersHaveNamesOfTheirOwn) {
  for (const char* family : {"deepseek32", "glm-dsa"}) {
    for (const auto& [theirs, ours] :
         {std::pair("blk.3.indexer.attn_k.weight", "model.layers.3.self_attn.indexer.wk.weight"),
          std::pair("blk.3.indexer.attn_q_b.weight",
                    "model.layers.3.self_attn.indexer.wq_b.weight"),
          std::pair("blk.3.indexer.proj.weight",
                    "model.layers.3.self_attn.indexer.weights_proj.weight"),
          std::pair("blk.3.indexer.k_norm.bias", "model.layers.3.self_attn.indexer.k_norm.bias"),
          std::pair("blk.3.attn_q_b.weight", "model.layers.3.self_attn.q_b_proj.weight")}) {
      EXPECT_EQ(hf_tensor_name(latent(family), theirs), ours);
      EXPECT_EQ(gguf_tensor_name(latent(family), ours), theirs);
    }
  }
  EXPECT_EQ(hf_tensor_name(latent("deepseek2"), "blk.3.attn_k_b.weight"),
            "model.layers.3.self_attn.k_b_proj.weight");
}

}  // namespace
}  // namespace foretoken
