#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <tuple>

#include "conformance/drafter_cases.h"
#include "conformance/layouts.h"
#include "draft/registry.h"

// With --kv-cache-dtype fp8 ids depend on nothing that runs beside a request: every drafter,
// batches, chunks, preemption, prefix hits, steps in flight; heads, windows and latents; several
// ranks.

namespace foretoken {
namespace {

constexpr int kFp8Tokens = 24;
constexpr int kFp8Drafts = 4;
constexpr int kFewFp8Blocks = 18;  // hardly more than one sequence at full length

Variant fp8(Variant variant) {
  variant.kv_cache_dtype = "fp8";
  return variant;
}

std::vector<std::string> fp8_prompts() { return bench_prompts(num_test_prompts(5)); }

// The bundled model of some type, with drafters or without.
RunResult run_bundled(const Variant& variant, const std::string& dtype,
                      const std::vector<SpeculativeConfig>& drafters, bool sampled) {
  EngineConfig config = config_of(fp8(variant), bundled_model());
  config.dtype = dtype;
  config.speculative = drafters;
  return run_config(config, variant, fp8_prompts(), sampled, kFp8Tokens);
}

// A drafter and the type of the models, whose kernels differ.
struct Fp8Case : SampledDrafter {
  std::string dtype;
};
void PrintTo(const Fp8Case& c, std::ostream* out) { *out << c.drafter << " " << c.dtype; }

// Every drafter greedy and sampled, in one type each; two of them greedy in the other type too.
std::vector<Fp8Case> fp8_cases() {
  std::vector<Fp8Case> cases;
  for (const SampledDrafter& one : sampled_drafters()) {
    cases.push_back({one, one.sampled ? "bfloat16" : "float32"});
  }
  for (const char* drafter : {"eagle3", "mtp"}) cases.push_back({{drafter, false}, "bfloat16"});
  return cases;
}

class Fp8Kv : public ::testing::TestWithParam<Fp8Case> {
 protected:
  static const std::string& dtype() { return GetParam().dtype; }
  static bool sampled() { return GetParam().sampled; }

  // Without speculation, one request after the other.
  static const RunResult& base() {
    static std::map<std::pair<std::string, bool>, RunResult> results;
    RunResult& result = results[{dtype(), sampled()}];
    if (result.ids.empty()) result = run_bundled({.name = "alone"}, dtype(), {}, sampled());
    return result;
  }

  static RunResult expect_same(const Variant& variant) {
    const std::string& name = GetParam().drafter;
    const RunResult other =
        run_bundled(variant, dtype(), {bundled_drafter(name, kFp8Drafts).config}, sampled());
    EXPECT_EQ(count_differences(base(), other, name + ", " + variant.describe()), 0);
    return other;
  }
};

TEST_P(Fp8Kv, IdsAndCountsAreTheSame) {
  const RunResult alone = expect_same({.name = "alone"});
  std::cout << GetParam().drafter << ", " << dtype() << ": drafted " << alone.stats.num_draft_tokens
            << ", accepted " << alone.stats.num_accepted_tokens << "\n";
  EXPECT_GT(alone.stats.num_accepted_tokens, 0);
  for (const int in_flight : {1, 3}) {
    const RunResult other =
        expect_same({.name = "batched", .steps_in_flight = in_flight, .batch = 32});
    // What came before differs then.
    if (declared_traits(GetParam().drafter).learns) continue;
    EXPECT_EQ(other.stats.num_draft_tokens, alone.stats.num_draft_tokens) << in_flight;
    EXPECT_EQ(other.stats.num_accepted_tokens, alone.stats.num_accepted_tokens) << in_flight;
  }
}

TEST_P(Fp8Kv, ChunkedPreemptedAndBehindPrefixHits) {
  const RunResult hits = expect_same({.name = "hits",
                                      .steps_in_flight = 2,
                                      .batch = 32,
                                      .max_batched_tokens = 37,
                                      .num_blocks = 4096,
                                      .prefix_caching = true,
                                      .warm = true});
  EXPECT_GT(hits.stats.num_cached_tokens, 0);
  const RunResult preempted = expect_same({.name = "preempted",
                                           .steps_in_flight = 3,
                                           .batch = 32,
                                           .num_blocks = kFewFp8Blocks,
                                           .prefix_caching = true});
  EXPECT_GT(preempted.stats.num_preemptions, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Fp8Kv, ::testing::ValuesIn(fp8_cases()), [](const auto& test) {
  return test.param.drafter + (test.param.sampled ? "Sampled_" : "Greedy_") + test.param.dtype;
});

std::string fp8_family_name(const std::string& architecture) {
  return architecture.substr(0, architecture.find("For"));
}

// Windows, which have a group of blocks of their own, and latents.
class Fp8KvFamilies : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static const test::DialledSet& set() { return test::DialledSet::of(std::get<0>(GetParam())); }
  static const std::string& kind() { return std::get<1>(GetParam()); }
};

TEST_P(Fp8KvFamilies, IdsAreTheSame) {
  const std::vector<Request> requests =
      dialled_requests(set(), kind(), num_test_prompts(5), kFp8Tokens);
  const RunResult plain = run_dialled(fp8({.drafter = kind()}), set(), requests);
  const auto expect_same = [&](Variant variant) {
    variant.num_draft_tokens = kFp8Drafts;
    variant.drafter = kind();
    const RunResult other = run_dialled(fp8(variant), set(), requests);
    EXPECT_EQ(count_differences(plain, other, variant.name), 0);
    EXPECT_GT(other.stats.num_accepted_tokens, 0) << variant.name;
    return other;
  };
  const RunResult alone = expect_same({.name = "alone"});
  const RunResult batched = expect_same({.name = "batched", .steps_in_flight = 2, .batch = 32});
  EXPECT_EQ(batched.stats.num_draft_tokens, alone.stats.num_draft_tokens);
  EXPECT_EQ(batched.stats.num_accepted_tokens, alone.stats.num_accepted_tokens);
  expect_same({.name = "chunked", .batch = 32, .max_batched_tokens = 23, .eager = true});
  const RunResult hits = expect_same(
      {.name = "hits", .steps_in_flight = 2, .batch = 32, .prefix_caching = true, .warm = true});
  EXPECT_GT(hits.stats.num_cached_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Fp8KvFamilies,
                         ::testing::Values(std::tuple{"Gemma3ForCausalLM", "draft_model"},
                                           std::tuple{"Gemma3ForCausalLM", "mtp"},
                                           std::tuple{"DeepseekV3ForCausalLM", "draft_model"},
                                           std::tuple{"DeepseekV3ForCausalLM", "eagle3"},
                                           std::tuple{"DeepseekV3ForCausalLM", "mtp_chained"}),
                         [](const auto& test) {
                           return fp8_family_name(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param);
                         });

// Stages compute what one rank does. Ranks that sum round otherwise, and a code may become its
// neighbour: there drafts must not change what the same ranks give without.
class Fp8KvLayouts : public ::testing::TestWithParam<std::tuple<Layout, std::string>> {
 protected:
  void SetUp() override {
    const std::string missing = missing_devices(std::get<0>(GetParam()).num_ranks());
    if (!missing.empty()) GTEST_SKIP() << missing;
  }

  static RunResult run(const Layout& layout, int num_draft_tokens,
                       const std::vector<Request>& requests) {
    EngineConfig config = config_of(fp8({.num_draft_tokens = num_draft_tokens,
                                         .drafter = num_draft_tokens > 0 ? "mtp" : "",
                                         .steps_in_flight = 2,
                                         .max_batched_tokens = 64}),
                                    test::DialledSet::of(std::get<1>(GetParam())));
    layout.apply(config);
    return run_alone(config, requests);
  }
};

TEST_P(Fp8KvLayouts, DraftsChangeNothing) {
  const Layout& layout = std::get<0>(GetParam());
  const std::vector<Request> requests = dialled_requests(
      test::DialledSet::of(std::get<1>(GetParam())), "mtp", num_test_prompts(5), 24);
  const RunResult plain = run(layout, 0, requests);
  const RunResult drafting = run(layout, 3, requests);
  EXPECT_EQ(count_differences(plain, drafting, layout.name()), 0);
  EXPECT_GT(drafting.stats.num_accepted_tokens, 0);
  const RunResult one = run({}, 3, requests);
  if (layout.tp == 1) {
    EXPECT_EQ(count_differences(one, drafting, "one rank"), 0);
  }
  EXPECT_EQ(drafting.ids.size(), one.ids.size());
}

INSTANTIATE_TEST_SUITE_P(Ranks, Fp8KvLayouts,
                         ::testing::Combine(::testing::Values(Layout{.tp = 2}, Layout{.pp = 2}),
                                            ::testing::Values("LlamaForCausalLM",
                                                              "DeepseekV3ForCausalLM")),
                         [](const auto& test) {
                           return std::get<0>(test.param).name() + "_" +
                                  fp8_family_name(std::get<1>(test.param));
                         });

// Equal ids would hide a flag that does nothing.
TEST(Fp8KvMemory, HasHalfTheBytesOfBfloat16) {
  EngineConfig config = config_of({}, bundled_model());
  config.num_gpu_blocks_override = 0;
  config.kv_cache_memory_bytes = int64_t{8} << 20;
  config.dtype = "bfloat16";
  std::unique_ptr<Engine> engine;
  ASSERT_TRUE(make_engine(config, &engine).ok());
  const int plain = engine->info().num_blocks;
  config.kv_cache_dtype = "fp8";
  ASSERT_TRUE(make_engine(config, &engine).ok());
  // One more where the rest of the memory is worth half a block.
  EXPECT_GE(engine->info().num_blocks, 2 * plain);
  EXPECT_LE(engine->info().num_blocks, 2 * plain + 1);
}

}  // namespace
}  // namespace foretoken
