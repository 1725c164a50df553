#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "conformance/harness.h"
#include "conformance/layouts.h"
#include "model/gguf_family_files.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

// GGUF files whose heads of values take turns among those of keys, divided among ranks: each has
// the heads of its keys, or some of those of the one key that it shares, and the ids are those of
// one rank.

namespace foretoken {
namespace {

struct TurningCase {
  const char* family;  // of the file
  const char* model;   // the golden that it is made of
  Layout layout;
  const char* hf_overrides = "";  // random weights where there are some
};
void PrintTo(const TurningCase& one, std::ostream* out) {
  *out << one.family << "_" << one.layout.name();
}

class TurningHeads : public testing::TestWithParam<TurningCase> {
 protected:
  void SetUp() override {
    const std::string missing = missing_devices(GetParam().layout.num_ranks());
    if (!missing.empty()) GTEST_SKIP() << missing;
    test::write_gguf(path_, GetParam().family, golden_.folder);
  }

  RunResult run(Variant variant, const Layout& layout) {
    if (variant.drafter == "draft_model") variant.draft_model = path_;
    EngineConfig config = config_of(variant, path_);
    config.max_model_len = golden_.max_model_len;
    config.dtype = "float32";
    config.skip_tokenizer_init = true;
    if (is_random()) {
      config.hf_overrides = GetParam().hf_overrides;
      config.load_format = "dummy";
    }
    layout.apply(config);
    const auto engine = start_engine(config);
    if (engine == nullptr) return {};
    const RunResult result = run_requests(*engine, variant, requests());
    expect_all_free(*engine);
    return result;
  }
  bool is_random() const { return *GetParam().hf_overrides != '\0'; }

 private:
  std::vector<Request> requests() const {
    const auto text = golden_.prompts->front().at("ids").get<std::vector<int32_t>>();
    std::vector<Request> all;
    for (int i = 0; i < 6; ++i) {
      Request& request = all.emplace_back();
      for (int j = 0; j < 19 + 11 * i; ++j) {
        request.prompt_token_ids.push_back(text[static_cast<size_t>(i + j) % text.size()]);
      }
      request.sampling.max_tokens = 32;
      request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.7f;
      request.sampling.seed = 30 + static_cast<uint64_t>(i);
      request.sampling.ignore_eos = true;
    }
    return all;
  }

  const test::GoldenCase golden_ = test::golden_cases({GetParam().model}).front();
  const test::ScratchFolder folder_;
  const std::string path_ = folder_.file("model.gguf");
};

TEST_P(TurningHeads, IdsAreThoseOfOneRank) {
  const Variant plain{.name = "plain"};
  const RunResult alone = run(plain, {});
  ASSERT_EQ(alone.ids.size(), 6u);
  Variant drafting{.num_draft_tokens = 3, .drafter = is_random() ? "ngram" : "draft_model"};
  drafting.steps_in_flight = 2;
  drafting.batch = 6;
  Variant modules = drafting;
  if (GetParam().family == std::string("qwen35")) modules.drafter = is_random() ? "ngram" : "mtp";
  for (const Variant& variant : {plain, drafting, modules}) {
    const RunResult shared = run(variant, GetParam().layout);
    EXPECT_EQ(count_differences(alone, shared, variant.describe()), 0);
    EXPECT_TRUE(variant.num_draft_tokens == 0 || shared.stats.num_draft_tokens > 0);
    const bool is_itself = variant.drafter == "draft_model";
    EXPECT_TRUE(!is_itself || shared.stats.num_accepted_tokens > 0);
  }
}

// Four keys of three heads of values each, for ranks with several keys.
constexpr const char* kTwelve = R"({"linear_num_key_heads": 4, "linear_num_value_heads": 12})";

INSTANTIATE_TEST_SUITE_P(
    All, TurningHeads,
    testing::Values(TurningCase{"qwen35", "qwen3_5", {.tp = 2}},
                    TurningCase{"qwen35", "qwen3_5", {.tp = 4}},
                    TurningCase{"qwen35", "qwen3_5", {.tp = 4, .dcp = 2}},
                    TurningCase{"qwen35moe", "qwen3_5_moe", {.tp = 2, .ep = true}},
                    TurningCase{"qwen35moe", "qwen3_5_moe", {.tp = 4, .ep = true}},
                    TurningCase{"qwen35", "qwen3_5", {.tp = 2}, kTwelve},
                    TurningCase{"qwen35", "qwen3_5", {.tp = 4}, kTwelve}),
    [](const auto& test) {
      std::string name = std::string(test.param.family) + "_" + test.param.layout.name();
      return name + (*test.param.hf_overrides != '\0' ? "_twelve" : "");
    });

}  // namespace
}  // namespace foretoken
