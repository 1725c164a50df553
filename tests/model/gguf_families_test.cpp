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

// A folder with a module made of the first layer with a window: that golden's tensors and, under
// the names of its family, the module's.
struct ModuleCase {
  const char* family;
  const char* golden;
  const char* module;                                       // before the names of its layer
  std::vector<std::pair<const char*, const char*>> others;  // of it, and what they are copies of
};
void PrintTo(const ModuleCase& one, std::ostream* out) { *out << one.family; }

class GgufModules : public testing::TestWithParam<ModuleCase> {
 protected:
  // The fields of the config.json with one module.
  static nlohmann::json config_of(const test::GoldenCase& golden) {
    nlohmann::json config = read_json_file(golden.folder + "/config.json").value();
    if (GetParam().others.empty()) return config;
    if (config.contains("text_config")) {
      config = config["text_config"];
      config["architectures"] = {"Step3p5ForCausalLM"};
      config["swiglu_limits"].push_back(0);
      config["swiglu_limits_shared"].push_back(0);
      config["rope_theta"].push_back(config["rope_theta"][1]);
      config["partial_rotary_factors"].push_back(1.0);
      config["layer_types"].push_back("sliding_attention");
    }
    config["num_nextn_predict_layers"] = 1;
    return config;
  }

  // Attention of the second layer and the MLP of the first, which has no experts.
  static test::Matrices module_of(const test::Matrices& all) {
    test::Matrices module;
    for (const auto& [name, matrix] : all) {
      if (GetParam().others.empty()) {  // the golden has one
        if (name.starts_with("mtp.")) module[name] = matrix;
        continue;
      }
      for (const char* part : {"model.layers.1.self_attn.", "model.layers.1.input_layernorm.",
                               "model.layers.0.mlp."}) {
        if (!name.starts_with(part)) continue;
        module[GetParam().module + name.substr(std::string("model.layers.0.").size())] = matrix;
      }
    }
    for (const auto& [name, of] : GetParam().others) {
      module[std::string(GetParam().module) + name] = all.at(of);
    }
    for (auto& [name, matrix] : module) {
      if (!name.ends_with("eh_proj.weight")) continue;
      matrix.shape[1] *= 2;
      matrix.values.resize(2 * matrix.values.size(), 0.01f);
    }
    return module;
  }
};

TEST_P(GgufModules, AreThoseOfTheFolder) {
  const ModuleCase& param = GetParam();
  const test::GoldenCase golden = test::golden_cases({param.golden}).front();
  const test::ScratchFolder usual, folder;
  test::Matrices all = test::matrices_of(golden.folder);
  std::erase_if(all, [](const auto& entry) { return entry.first.starts_with("vi"); });
  const test::Matrices module = module_of(all);
  all.insert(module.begin(), module.end());
  test::write_floats(usual.file("model.safetensors"), all);
  usual.write("config.json", config_of(golden).dump());
  const GgufArchitecture& architecture = test::architecture_of(param.family);
  const std::string path = folder.file("model.gguf");
  const int32_t num_layers = read_model_config(usual.path(), {}).value().num_layers;
  test::write_gguf(path, param.family, usual.path(), [&](test::Matrices* own) {
    for (auto [name, matrix] : module) {
      own->erase(name);
      if (test::module_name_in_file(architecture, name, num_layers).empty()) continue;
      const bool counts_from_one = architecture.whole_norms && name.find("norm") != name.npos;
      if (counts_from_one) test::add_one(matrix);
      (*own)[test::module_name_in_file(architecture, name, num_layers)] = matrix;
    }
  });
  if (HasFatalFailure()) return;
  const Checkpoint checkpoint = Checkpoint::open(path).value();
  for (const auto& [name, matrix] : module) {
    if (test::module_name_in_file(architecture, name, num_layers).empty()) continue;
    const auto found = checkpoint.find(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    const TensorView& view = *found.value();
    EXPECT_EQ(view.shape, matrix.shape) << name;
    std::vector<float> values(matrix.values.size());
    ASSERT_TRUE(convert_tensor(view, DType::kF32, values.data()).ok());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i] - (view.is_whole_norm ? 1 : 0), matrix.values[i], 1e-6) << name;
    }
  }
  const auto target = read_model_config(path, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ(target.value().num_layers, num_layers);
  const auto head = read_draft_head_config(path, HeadKind::kMtp, target.value(), {});
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head.value().num_modules, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Files, GgufModules,
    testing::Values(ModuleCase{"mimo2",
                               "mimo_v2",
                               "model.mtp.layers.0.",
                               {{"enorm.weight", "model.norm.weight"},
                                {"hnorm.weight", "model.norm.weight"},
                                {"pre_mlp_layernorm.weight", "model.norm.weight"},
                                {"final_layernorm.weight", "model.norm.weight"},
                                {"eh_proj.weight", "model.layers.0.mlp.gate_proj.weight"}}},
                    ModuleCase{"step35",
                               "step3p7",
                               "model.layers.3.",
                               {{"enorm.weight", "model.norm.weight"},
                                {"hnorm.weight", "model.norm.weight"},
                                {"post_attention_layernorm.weight", "model.norm.weight"},
                                {"transformer.shared_head.norm.weight", "model.norm.weight"},
                                {"transformer.shared_head.output.weight", "lm_head.weight"},
                                {"eh_proj.weight", "model.layers.0.mlp.gate_proj.weight"}}},
                    ModuleCase{"qwen35", "qwen3_5", "mtp.layers.0.", {}},
                    ModuleCase{"deepseek4", "deepseek_v4", "mtp.0.", {}}),
    [](const auto& test) { return std::string(test.param.family); });

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
        Family{"hy_v4", "hy_v4", {"rms_norm_eps", "rope_interleave"}},
        Family{"glm-dsa", "glm_moe_dsa", {"rms_norm_eps"}}, Family{"deci", "deci"},
        Family{"cohere2moe", "cohere2_moe-mean"}, Family{"mimo2", "mimo_v2"},
        Family{"bitnet-b1.58", "bitnet"}, Family{"glm4moe", "glm4_moe"},
        Family{"bailingmoe2", "bailing_moe_v2"}, Family{"dots1", "dots1"},
        Family{"minimax-m2", "minimax_m2"}, Family{"minimax-m3", "minimax_m3", {"swiglu_limit"}},
        Family{"deepseek4", "deepseek_v4", {"rms_norm_eps"}},
        Family{"ernie4_5-moe", "ernie4_5_moe"},
        Family{"qwen3next", "qwen3_next", {"mlp_only_layers"}}, Family{"qwen35", "qwen3_5"},
        Family{"qwen35moe", "qwen3_5_moe"}, Family{"kimi-linear", "kimi_linear"},
        Family{"kimi-k3", "kimi_k3"}, Family{"mamba2", "mamba2"},
        Family{"nemotron_h", "nemotron_h"}, Family{"nemotron_h_moe", "nemotron_h-moe"},
        Family{"nemotron_h_moe", "nemotron_h-latent"}, Family{"granitehybrid", "granite4-h"},
        Family{"falcon-h1", "falcon_h1"}, Family{"jamba", "jamba"}, Family{"mamba", "mamba"},
        Family{"mamba", "falcon_mamba"}, Family{"rwkv7", "rwkv7"}, Family{"lfm2", "lfm2"},
        Family{"lfm2moe", "lfm2_moe"}, Family{"command-r", "cohere"},
        Family{"afmoe", "trinity", {"layer_types"}}, Family{"laguna", "laguna"},
        Family{"step35", "step3p7"}, Family{"spark2_5", "spark"}, Family{"nanbeige", "nanbeige"},
        Family{"apertus", "apertus", {"rope_scaling"}}, Family{"muse-glimmer", "muse_glimmer"},
        Family{"orion", "orion"}, Family{"maincoder", "maincoder"},
        Family{"pangu-embedded", "internlm"}, Family{"xverse", "llama"}, Family{"qwen", "qwen"},
        Family{"openelm", "openelm"}, Family{"jais", "jais"}, Family{"deepseek", "deepseek_v1"},
        Family{"bailingmoe", "bailing_moe"}, Family{"hunyuan_vl", "hunyuan"},
        Family{"granite_swa", "granite_swa"}),
    [](const auto& test) {
      std::string name = test.param.golden;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace foretoken
