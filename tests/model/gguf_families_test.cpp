#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/draft_head_config.h"
#include "model/forward_harness.h"
#include "model/gguf_family_files.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// The MTP modules of a file are its drafter's.
TEST(GgufHeads, MtpModulesBehindTheLayers) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  const test::GoldenCase golden = test::golden_cases({"glm4_moe"}).front();
  test::write_gguf(path, "glm4moe", golden.folder);
  const auto target = read_model_config(path, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ(target.value().num_layers, 2);
  const auto head = read_draft_head_config(path, HeadKind::kMtp, target.value(), {});
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head.value().num_modules, 1);
  EXPECT_EQ(head.value().first_layer, 2);
  EXPECT_TRUE(head.value().layer.layers[0].experts);
}

// As converters write it for MiMo V2.5: queries, keys and values as one tensor.
TEST(GgufFamilies, JoinedProjectionsAreDivided) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  const test::GoldenCase golden = test::golden_cases({"mimo_v2"}).front();
  test::write_gguf(path, "mimo2", golden.folder, test::join_projections);
  const Checkpoint joined = Checkpoint::open(path).value();
  const Checkpoint apart = Checkpoint::open(golden.folder).value();
  int compared = 0;
  for (const auto& [name, tensor] : joined.tensors()) {
    if (name.find(".self_attn.") == std::string::npos) continue;
    const TensorView& own = *apart.find(name).value();
    ASSERT_EQ(tensor->shape, own.shape) << name;
    std::vector<float> values(static_cast<size_t>(own.num_elements())), wanted(values.size());
    ASSERT_TRUE(convert_tensor(*tensor, DType::kF32, values.data()).ok());
    ASSERT_TRUE(convert_tensor(own, DType::kF32, wanted.data()).ok());
    EXPECT_EQ(values, wanted) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 3 * 4 + 1);
}

struct Family {
  const char* name;    // in the file
  const char* golden;  // folder
  // Fields of config.json that files say by tensors of their own, which are not written here.
  std::vector<const char*> overridden = {};
};

class GgufFamilies : public testing::TestWithParam<Family> {};

TEST_P(GgufFamilies, HaveTheLogitsOfTheFolder) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  const test::GoldenCase golden = test::golden_cases({GetParam().golden}).front();
  test::write_gguf(path, GetParam().name, golden.folder);
  if (HasFatalFailure()) return;
  nlohmann::json overrides = nlohmann::json::object();
  const auto own = read_json_file(golden.folder + "/config.json").value();
  for (const char* field : GetParam().overridden) overrides[field] = own.at(field);
  const auto model =
      test::load_test_model(path, {"float32", overrides.dump()}, 70, golden.max_model_len);
  for (const test::GoldenPrompt& prompt : test::golden_prompts(golden)) {
    test::ForwardHarness harness(test::model_device(), *model, 70, 32);
    const auto rows = harness.run(prompt.ids, 70);
    for (size_t i = 0; i < prompt.positions.size(); ++i) {
      const std::vector<float>& got = rows[static_cast<size_t>(prompt.positions[i])];
      double error = 0, size = 0;
      for (size_t at = 0; at < got.size(); ++at) {
        error += std::pow(got[at] - prompt.logits[i][at], 2);
        size += std::pow(prompt.logits[i][at], 2);
      }
      EXPECT_LT(std::sqrt(error / size), 1e-5) << "position " << prompt.positions[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, GgufFamilies,
    testing::Values(
        Family{"gpt2", "gpt2"}, Family{"gptneox", "gpt_neox"}, Family{"gptneox", "gpt_neox-serial"},
        Family{"falcon", "falcon"}, Family{"falcon", "falcon-large"}, Family{"bloom", "bloom"},
        Family{"mpt", "mpt"}, Family{"gemma3n", "gemma3n"}, Family{"phi2", "phi"},
        Family{"olmo", "olmo"}, Family{"starcoder", "gpt_bigcode"},
        Family{"exaone", "exaone", {"rope_scaling"}}, Family{"dbrx", "dbrx"},
        Family{"internlm2", "internlm2", {"rope_scaling", "max_position_embeddings"}},
        Family{"minicpm", "minicpm"}, Family{"baichuan", "baichuan"}, Family{"chatglm", "chatglm"},
        Family{"mistral3", "ministral3"}, Family{"mistral4", "mistral4", {"rms_norm_eps"}},
        Family{"deepseek32", "deepseek_v32", {"rms_norm_eps", "rope_scaling"}},
        Family{"glm-dsa", "glm_moe_dsa", {"rms_norm_eps"}}, Family{"deci", "deci"},
        Family{"cohere2moe", "cohere2_moe-mean"}, Family{"mimo2", "mimo_v2"},
        Family{"bitnet-b1.58", "bitnet"}, Family{"glm4moe", "glm4_moe"},
        Family{"bailingmoe2", "bailing_moe_v2"}, Family{"dots1", "dots1"},
        Family{"minimax-m2", "minimax_m2"}, Family{"minimax-m3", "minimax_m3", {"swiglu_limit"}},
        Family{"deepseek4", "deepseek_v4", {"rms_norm_eps"}},
        Family{"ernie4_5-moe", "ernie4_5_moe"},
        Family{"qwen3next", "qwen3_next", {"mlp_only_layers"}}, Family{"qwen35", "qwen3_5"},
        Family{"qwen35moe", "qwen3_5_moe"}, Family{"mamba2", "mamba2"},
        Family{"nemotron_h", "nemotron_h"}, Family{"nemotron_h_moe", "nemotron_h-moe"},
        Family{"nemotron_h_moe", "nemotron_h-latent"}, Family{"granitehybrid", "granite4-h"},
        Family{"falcon-h1", "falcon_h1"}, Family{"jamba", "jamba"}, Family{"mamba", "mamba"},
        Family{"mamba", "falcon_mamba"}, Family{"lfm2", "lfm2"}, Family{"lfm2moe", "lfm2_moe"},
        Family{"command-r", "cohere"}, Family{"afmoe", "trinity", {"layer_types"}},
        Family{"laguna", "laguna"}, Family{"step35", "step3p7"}, Family{"spark2_5", "spark"},
        Family{"nanbeige", "nanbeige"}, Family{"apertus", "apertus", {"rope_scaling"}},
        Family{"muse-glimmer", "muse_glimmer"}, Family{"orion", "orion"},
        Family{"maincoder", "maincoder"}, Family{"pangu-embedded", "internlm"},
        Family{"xverse", "llama"}),
    [](const auto& test) {
      std::string name = test.param.golden;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace foretoken
