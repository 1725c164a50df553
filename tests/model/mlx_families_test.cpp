#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "model/forward_harness.h"
#include "model/golden.h"
#include "model/mlx_family_files.h"
#include "support/scratch_folder.h"

// Folders that mlx_lm's tools have sanitised have the logits of those that they were made of.

namespace foretoken {
namespace {

class MlxFamilies : public testing::TestWithParam<const char*> {
 protected:
  static std::vector<std::vector<float>> logits(const std::string& folder, int32_t max_model_len) {
    const auto model = test::load_test_model(folder, {"float32", ""}, 70, max_model_len);
    test::ForwardHarness harness(test::model_device(), *model, 70, 32);
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 60; ++i) ids.push_back((i * 37 + 11) % 100);
    return harness.run(ids, 70);
  }
};

TEST_P(MlxFamilies, HaveTheLogitsOfTheFolder) {
  const test::GoldenCase golden = test::golden_cases({GetParam()}).front();
  test::Matrices all = test::matrices_of(golden.folder);
  const auto json = read_json_file(golden.folder + "/config.json").value();
  const ModelConfig config = read_model_config(golden.folder, {}).value();
  // ERNIE's corrections of choices are lost, and its logits those of zeros.
  for (auto& [name, matrix] : all) {
    const bool is_lost = name.find("moe_statics") != std::string::npos;
    if (is_lost) std::fill(matrix.values.begin(), matrix.values.end(), 0.0f);
  }
  const test::ScratchFolder usual, sanitised;
  test::write_floats(usual.file("model.safetensors"), all);
  test::sanitize(GetParam(), json, config, &all);
  test::write_floats(sanitised.file("model.safetensors"), all);
  for (const test::ScratchFolder* folder : {&usual, &sanitised}) {
    std::filesystem::copy_file(golden.folder + "/config.json", folder->file("config.json"));
  }
  const auto want = logits(usual.path(), golden.max_model_len);
  const auto got = logits(sanitised.path(), golden.max_model_len);
  ASSERT_EQ(got.size(), want.size());
  for (size_t row = 0; row < want.size(); ++row) {
    double error = 0, size = 0;
    for (size_t at = 0; at < want[row].size(); ++at) {
      error += std::pow(got[row][at] - want[row][at], 2);
      size += std::pow(want[row][at], 2);
    }
    ASSERT_LT(std::sqrt(error / size), 1e-5) << "position " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, MlxFamilies,
                         testing::Values("step3p7", "kimi_linear", "falcon_h1", "gpt2", "gpt_neox",
                                         "dbrx", "granite4-h", "granite4", "granitemoe",
                                         "qwen3_next", "qwen3_5", "nemotron_h-moe", "lfm2_moe",
                                         "longcat_flash", "ernie4_5_moe", "exaone_moe",
                                         "bailing_moe_v2", "mixtral", "phimoe", "minimax_m2",
                                         "qwen2_moe", "qwen3_moe", "olmoe", "jamba", "mamba",
                                         "mamba2", "glm4_moe"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

}  // namespace
}  // namespace foretoken
