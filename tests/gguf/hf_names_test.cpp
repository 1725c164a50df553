#include "gguf/hf_names.h"

#include <gtest/gtest.h>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

const GgufArchitecture& named(std::string_view name) {
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    if (architecture.name == name) return architecture;
  }
  ADD_FAILURE() << name;
  return gguf_architectures()[0];
}

TEST(HfNames, TensorsOfModelAndLayers) {
  const GgufArchitecture& llama = named("llama");
  EXPECT_EQ(hf_tensor_name(llama, "token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(hf_tensor_name(llama, "output.weight"), "lm_head.weight");
  EXPECT_EQ(hf_tensor_name(llama, "blk.12.attn_q.bias"), "model.layers.12.self_attn.q_proj.bias");
  EXPECT_EQ(hf_tensor_name(llama, "blk.0.ffn_norm.weight"),
            "model.layers.0.post_attention_layernorm.weight");
  for (const char* other : {"rope_freqs.weight", "blk.0", "blk.0.weight", "blk.0.odd.weight", ""}) {
    EXPECT_EQ(hf_tensor_name(llama, other), std::nullopt) << other;
  }
  EXPECT_TRUE(is_config_tensor(gguf_architectures()[0], "rope_factors_long.weight"));
  EXPECT_FALSE(is_config_tensor(gguf_architectures()[0], "blk.0.odd.weight"));
  EXPECT_TRUE(is_media_tensor("v.blk.0.attn_q.weight"));
  EXPECT_TRUE(is_media_tensor("mm.input_projection.weight"));
  EXPECT_FALSE(is_media_tensor("blk.0.attn_v.weight"));
}

TEST(HfNames, ArchitecturesHaveNamesOfTheirOwn) {
  const GgufArchitecture& gemma = named("gemma3");
  EXPECT_EQ(hf_tensor_name(gemma, "blk.1.ffn_norm.weight"),
            "model.layers.1.pre_feedforward_layernorm.weight");
  EXPECT_EQ(hf_tensor_name(gemma, "blk.1.post_attention_norm.weight"),
            "model.layers.1.post_attention_layernorm.weight");
  const GgufArchitecture& phi = named("phi3");
  EXPECT_EQ(hf_tensor_name(phi, "blk.0.ffn_up.weight"), "model.layers.0.mlp.gate_up_proj.weight");
  EXPECT_EQ(hf_tensor_name(phi, "blk.0.attn_qkv.weight"),
            "model.layers.0.self_attn.qkv_proj.weight");
}

TEST(HfNames, LatentsAndExperts) {
  const GgufArchitecture& deepseek = named("deepseek2");
  for (const auto& [gguf, hf] :
       {std::pair("attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight"),
        std::pair("attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight"),
        std::pair("attn_k_b.weight", "self_attn.k_b_proj.weight"),
        std::pair("attn_output.weight", "self_attn.o_proj.weight"),
        std::pair("exp_probs_b.bias", "mlp.gate.e_score_correction_bias"),
        std::pair("ffn_down_exps.weight", "mlp.experts.down_proj.weight"),
        std::pair("ffn_up_shexp.weight", "mlp.shared_experts.up_proj.weight")}) {
    const std::string theirs = std::string("blk.7.") + gguf;
    const std::string ours = std::string("model.layers.7.") + hf;
    EXPECT_EQ(hf_tensor_name(deepseek, theirs), ours);
    EXPECT_EQ(gguf_tensor_name(deepseek, ours), theirs);
  }
}

TEST(HfNames, ExpertsOfOtherFamilies) {
  EXPECT_EQ(hf_tensor_name(named("llama"), "blk.0.ffn_up_exps.weight"),
            "model.layers.0.block_sparse_moe.experts.w3.weight");
  EXPECT_EQ(hf_tensor_name(named("llama"), "blk.0.ffn_up.weight"),
            "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(hf_tensor_name(named("qwen2moe"), "blk.1.ffn_gate_inp_shexp.weight"),
            "model.layers.1.mlp.shared_expert_gate.weight");
  EXPECT_EQ(hf_tensor_name(named("olmoe"), "blk.1.ffn_gate_exps.weight"),
            "model.layers.1.mlp.experts.gate_proj.weight");
}

TEST(HfNames, SinksAndBiasesOfExperts) {
  const GgufArchitecture& gpt_oss = named("gpt-oss");
  for (const auto& [gguf, hf] :
       {std::pair("attn_sinks.weight", "self_attn.sinks"),
        std::pair("attn_norm.weight", "input_layernorm.weight"),
        std::pair("post_attention_norm.weight", "post_attention_layernorm.weight"),
        std::pair("ffn_gate_inp.bias", "mlp.router.bias"),
        std::pair("ffn_gate_exps.weight", "mlp.experts.gate_proj.weight"),
        std::pair("ffn_up_exps.bias", "mlp.experts.up_proj.bias"),
        std::pair("ffn_down_exps.bias", "mlp.experts.down_proj.bias")}) {
    const std::string theirs = std::string("blk.7.") + gguf;
    const std::string ours = std::string("model.layers.7.") + hf;
    EXPECT_EQ(hf_tensor_name(gpt_oss, theirs), ours);
    EXPECT_EQ(gguf_tensor_name(gpt_oss, ours), theirs);
  }
}

TEST(HfNames, AndBack) {
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    for (const char* name :
         {"token_embd.weight", "output_norm.weight", "output.weight", "blk.12.attn_q.bias",
          "blk.0.ffn_norm.weight", "blk.0.ffn_up.weight", "blk.3.attn_k_norm.weight"}) {
      const auto hf = hf_tensor_name(architecture, name);
      if (!hf) continue;
      EXPECT_EQ(gguf_tensor_name(architecture, *hf), name) << architecture.name;
    }
  }
  for (const char* other : {"model.layers.0", "model.layers.0.odd.weight", "visual.x.weight", ""}) {
    EXPECT_EQ(gguf_tensor_name(named("llama"), other), std::nullopt) << other;
  }
  EXPECT_EQ(gguf_architecture_for("MistralForCausalLM"), gguf_architecture_for("LlamaForCausalLM"));
  EXPECT_EQ(gguf_architecture_for("Qwen3ForCausalLM")->name, "qwen3");
  EXPECT_EQ(gguf_architecture_for("Gemma3ForCausalLM"), nullptr);
  EXPECT_NE(gguf_hf_classes().find("Qwen3ForCausalLM, MistralForCausalLM"), std::string::npos);
}

// Mixtral's files of 2023.
TEST(HfNames, ExpertsOfOldFilesAreTensorsOfTheirOwn) {
  const GgufArchitecture& llama = named("llama");
  EXPECT_EQ(hf_tensor_name(llama, "blk.2.ffn_gate.7.weight"),
            "model.layers.2.block_sparse_moe.experts.7.w1.weight");
  EXPECT_EQ(hf_tensor_name(llama, "blk.12.ffn_down.0.weight"),
            "model.layers.12.block_sparse_moe.experts.0.w2.weight");
  EXPECT_EQ(hf_tensor_name(llama, "blk.2.ffn_gate.x.weight"), std::nullopt);
  EXPECT_EQ(hf_tensor_name(named("gemma2"), "blk.2.ffn_gate.7.weight"), std::nullopt);
}

TEST(HfNames, UnknownArchitecturesAreNamed) {
  const test::ScratchFolder folder;
  const std::string path = test::GgufBytes(0, 1)
                               .text_value("general.architecture", "odd")
                               .align()
                               .write(folder.file("odd.gguf"));
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok());
  const Status status = gguf_architecture(*file.value()).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("'odd'"), std::string::npos);
  EXPECT_NE(status.message().find("llama, qwen2, qwen3"), std::string::npos);
}

TEST(HfNames, FilesBesideModelsAreToldWhatTheyAre) {
  struct Beside {
    const char* architecture;
    const char* type;
    const char* says;
  };
  const test::ScratchFolder folder;
  for (const Beside& beside :
       {Beside{"llama", "adapter", "is a LoRA adapter and no model"},
        Beside{"clip", "mmproj", "give the file of the model beside it"},
        Beside{"clip", "model", "(mmproj) and no model"}, Beside{"", "imatrix", "--imatrix"}}) {
    test::GgufBytes bytes(0, 2);
    bytes.text_value("general.architecture", beside.architecture);
    bytes.text_value("general.type", beside.type);
    const auto file = GgufFile::open(bytes.align().write(folder.file("beside.gguf")));
    ASSERT_TRUE(file.ok()) << file.status().message();
    const Status status = gguf_architecture(*file.value()).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find(beside.says), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace foretoken
