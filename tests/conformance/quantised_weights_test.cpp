#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <ostream>
#include <tuple>

#include "conformance/drafter_cases.h"
#include "conformance/layouts.h"
#include "convert/to_awq.h"
#include "convert/to_fp4.h"
#include "convert/to_fp8.h"
#include "convert/to_gguf.h"
#include "convert/to_gptq.h"
#include "draft/registry.h"
#include "gguf/gguf_recipe.h"
#include "support/scratch_folder.h"

// Weights of few bits: with every drafter ids and counts depend on nothing that runs beside a
// request, also over a cache of other types and over ranks.

namespace foretoken {
namespace {

constexpr int kFewBitTokens = 24;
constexpr int kFewBitDrafts = 4;

// Writes the bundled model in a form that `foretoken convert` has.
Result<int64_t> write_form(const std::string& form, const std::string& output) {
  ConvertOptions options;
  options.output = output;
  if (form == "nvfp4") return to_fp4(bundled_model(), Fp4Form::kNvfp4, options);
  if (form == "mxfp4") return to_fp4(bundled_model(), Fp4Form::kMxfp4, options);
  if (form == "awq") return to_awq(bundled_model(), 128, options);
  if (form == "fp8_block") return to_fp8(bundled_model(), Fp8Form::kBlocks, options);
  if (form == "gptq") return to_gptq(bundled_model(), GptqForm{}, options);
  return to_gguf(bundled_model(), *find_gguf_recipe(form), options);
}

// The bundled model in a form, written when it is first asked for; of "fp8", which is made while
// loading, the model itself.
std::string model_in(const std::string& form) {
  if (form == "fp8") return bundled_model();
  static const test::ScratchFolder folder;
  static std::map<std::string, std::string> written;
  std::string& path = written[form];
  if (!path.empty()) return path;
  path = folder.file(find_gguf_recipe(form) != nullptr ? form + ".gguf" : form);
  const Result<int64_t> bytes = write_form(form, path);
  EXPECT_TRUE(bytes.ok()) << form << ": " << bytes.status().message();
  return path;
}

RunResult run_few_bits(const std::string& form, const Variant& variant, const Layout& layout,
                       const std::vector<SpeculativeConfig>& drafters, bool sampled) {
  EngineConfig config = config_of(variant, model_in(form));
  config.dtype = "bfloat16";
  if (form == "fp8") config.quantization = form;
  config.speculative = drafters;
  if (layout.num_ranks() > 1) layout.apply(config);
  return run_config(config, variant, bench_prompts(num_test_prompts(5)), sampled, kFewBitTokens);
}

struct FewBitCase {
  std::string form;
  std::string drafter;
};
void PrintTo(const FewBitCase& c, std::ostream* out) { *out << c.form << " " << c.drafter; }

// Every drafter over one form of floats, one of integers and one of scaled scales; the others with
// a drafter of each kind.
std::vector<FewBitCase> few_bit_cases() {
  std::vector<FewBitCase> cases;
  for (const char* form : {"fp8", "gptq", "q4_k_m"}) {
    for (const std::string& drafter : drafter_names()) cases.push_back({form, drafter});
  }
  for (const char* form : {"nvfp4", "mxfp4", "awq", "fp8_block", "q4_0", "q8_0", "q6_k"}) {
    for (const char* drafter : {"ngram", "draft_model", "eagle3", "dspark"}) {
      cases.push_back({form, drafter});
    }
  }
  return cases;
}

class QuantisedWeights : public testing::TestWithParam<FewBitCase> {
 protected:
  // Without speculation, one request after the other.
  static const RunResult& base(bool sampled) {
    static std::map<std::pair<std::string, bool>, RunResult> results;
    RunResult& result = results[{GetParam().form, sampled}];
    if (result.ids.empty()) result = run_few_bits(GetParam().form, {}, {}, {}, sampled);
    return result;
  }

  static RunResult expect_same(const Variant& variant, bool sampled) {
    const std::string& name = GetParam().drafter;
    const RunResult other = run_few_bits(GetParam().form, variant, {},
                                         {bundled_drafter(name, kFewBitDrafts).config}, sampled);
    const std::string what = GetParam().form + ", " + name + ", " + variant.describe();
    EXPECT_EQ(count_differences(base(sampled), other, what), 0);
    return other;
  }
};

TEST_P(QuantisedWeights, IdsAndCountsAreTheSame) {
  for (const bool sampled : {false, true}) {
    const RunResult alone = expect_same({.name = "alone"}, sampled);
    std::cout << GetParam().form << ", " << GetParam().drafter << ": drafted "
              << alone.stats.num_draft_tokens << ", accepted " << alone.stats.num_accepted_tokens
              << "\n";
    EXPECT_GT(alone.stats.num_accepted_tokens, 0);
    const RunResult batched =
        expect_same({.name = "batched", .steps_in_flight = 3, .batch = 32}, sampled);
    // What came before differs then.
    if (declared_traits(GetParam().drafter).learns) continue;
    EXPECT_EQ(batched.stats.num_draft_tokens, alone.stats.num_draft_tokens);
    EXPECT_EQ(batched.stats.num_accepted_tokens, alone.stats.num_accepted_tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(All, QuantisedWeights, testing::ValuesIn(few_bit_cases()),
                         [](const auto& test) {
                           return test.param.form + "_" + test.param.drafter;
                         });

using FewBitLayout = std::tuple<Layout, std::string, std::string>;  // form, type of the cache

class QuantisedLayouts : public testing::TestWithParam<FewBitLayout> {
 protected:
  void SetUp() override {
    const std::string missing = missing_devices(std::get<0>(GetParam()).num_ranks());
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

// Ranks that sum round otherwise than one; drafts change nothing of what they say.
TEST_P(QuantisedLayouts, DraftsChangeNothing) {
  const auto& [layout, form, kv_cache_dtype] = GetParam();
  const Variant variant{.name = layout.name(),
                        .steps_in_flight = 2,
                        .batch = 8,
                        .prefix_caching = true,
                        .kv_cache_dtype = kv_cache_dtype};
  const RunResult plain = run_few_bits(form, variant, layout, {}, false);
  for (const char* drafter : {"ngram", "mtp", "dflash"}) {
    const SpeculativeConfig config = bundled_drafter(drafter, kFewBitDrafts).config;
    const RunResult drafting = run_few_bits(form, variant, layout, {config}, false);
    EXPECT_EQ(count_differences(plain, drafting, layout.name() + ", " + drafter), 0);
    EXPECT_GT(drafting.stats.num_accepted_tokens, 0) << drafter;
    if (layout.tp > 1) continue;
    const RunResult one = run_few_bits(form, variant, {}, {config}, false);
    EXPECT_EQ(count_differences(one, drafting, std::string("one rank, ") + drafter), 0);
    EXPECT_EQ(one.stats.num_draft_tokens, drafting.stats.num_draft_tokens) << drafter;
    EXPECT_EQ(one.stats.num_accepted_tokens, drafting.stats.num_accepted_tokens) << drafter;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, QuantisedLayouts,
                         testing::Combine(testing::Values(Layout{.tp = 2}, Layout{.pp = 2}),
                                          testing::Values("fp8", "nvfp4", "q8_0"),
                                          testing::Values("auto", "fp8")),
                         [](const auto& test) {
                           return std::get<0>(test.param).name() + "_" + std::get<1>(test.param) +
                                  "_" + std::get<2>(test.param);
                         });

}  // namespace
}  // namespace foretoken
