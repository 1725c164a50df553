#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "conformance/drafter_cases.h"
#include "conformance/layouts.h"

// With --kv-cache-dtype int8 ids depend on nothing that runs beside a request either: every
// drafter, batches, chunks, preemption, prefix hits, steps in flight.

namespace foretoken {
namespace {

constexpr int kInt8Tokens = 64;
constexpr int kFewInt8Blocks = 26;  // hardly more than one sequence at full length

Variant int8(Variant variant) {
  variant.kv_cache_dtype = "int8";
  return variant;
}

class Int8Kv : public ::testing::TestWithParam<SampledDrafter> {
 protected:
  static std::vector<std::string> prompts() { return bench_prompts(num_test_prompts(16)); }

  // Without speculation, one request after the other.
  static const RunResult& base(bool sampled) {
    static std::map<bool, RunResult> results;
    RunResult& result = results[sampled];
    if (result.ids.empty()) {
      result =
          run_variant(int8({.name = "alone"}), bundled_model(), prompts(), sampled, kInt8Tokens);
    }
    return result;
  }

  static RunResult expect_same(const Variant& variant, std::vector<SpeculativeConfig> drafters) {
    const bool sampled = GetParam().sampled;
    const RunResult other =
        run_with_drafters(variant, std::move(drafters), prompts(), sampled, kInt8Tokens);
    const std::string what = GetParam().drafter + ", " + variant.describe();
    const int differing = count_differences(base(sampled), other, what);
    std::cout << what << ": " << differing << " of " << other.ids.size()
              << " prompts differ, drafted " << other.stats.num_draft_tokens << ", accepted "
              << other.stats.num_accepted_tokens << ", preemptions " << other.stats.num_preemptions
              << ", cached tokens " << other.stats.num_cached_tokens << "\n";
    EXPECT_EQ(differing, 0);
    return other;
  }

  static SpeculativeConfig drafter(int num_draft_tokens) {
    return bundled_drafter(GetParam().drafter, num_draft_tokens).config;
  }
};

TEST_P(Int8Kv, Alone) {
  const RunResult result = expect_same(int8({.name = "alone"}), {drafter(3)});
  EXPECT_GT(result.stats.num_accepted_tokens, 0);
}

TEST_P(Int8Kv, Everything) {
  const RunResult result = expect_same(int8({.name = "everything",
                                             .steps_in_flight = 2,
                                             .batch = 32,
                                             .max_batched_tokens = 64,
                                             .num_blocks = 4096,
                                             .prefix_caching = true,
                                             .warm = true}),
                                       {drafter(4)});
  EXPECT_GT(result.stats.num_cached_tokens, 0);
  EXPECT_GT(result.stats.num_accepted_tokens, 0);
}

TEST_P(Int8Kv, Preempted) {
  const RunResult result = expect_same(int8({.name = "preempted",
                                             .steps_in_flight = 3,
                                             .batch = 32,
                                             .num_blocks = kFewInt8Blocks,
                                             .prefix_caching = true}),
                                       {drafter(4)});
  EXPECT_GT(result.stats.num_preemptions, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Int8Kv, ::testing::ValuesIn(sampled_drafters()),
                         [](const auto& param) {
                           return param.param.drafter +
                                  (param.param.sampled ? "Sampled" : "Greedy");
                         });

void expect_same_without_drafts(bool sampled) {
  const std::vector<std::string> prompts = bench_prompts(num_test_prompts(16));
  const auto run = [&](const Variant& variant) {
    return run_variant(int8(variant), bundled_model(), prompts, sampled, kInt8Tokens);
  };
  const RunResult base = run({});
  for (const Variant& variant :
       {Variant{.name = "batch", .steps_in_flight = 2, .batch = 32, .max_batched_tokens = 37},
        Variant{
            .name = "few blocks", .steps_in_flight = 3, .batch = 32, .num_blocks = kFewInt8Blocks},
        Variant{.name = "hits", .batch = 5, .prefix_caching = true, .warm = true},
        Variant{.name = "eager", .batch = 7, .eager = true}}) {
    EXPECT_EQ(count_differences(base, run(variant), variant.describe()), 0);
  }
}

TEST(Int8KvWithoutDrafts, BatchesChunksPreemptionAndHits) { expect_same_without_drafts(false); }

TEST(Int8KvWithoutDrafts, TheSameSampled) { expect_same_without_drafts(true); }

// A mask and a score of one's own change scores of codes.
TEST(Int8KvWithMasks, DraftsBatchesAndChunksChangeNothing) {
  const std::vector<std::string> prompts = bench_prompts(num_test_prompts(8));
  const auto run = [&](const Variant& variant, const char* backend, const char* drafter) {
    EngineConfig config = config_of(int8(variant), bundled_model());
    config.attention_backend = backend;
    if (*drafter != '\0') config.speculative = {bundled_drafter(drafter, 3).config};
    return run_config(config, variant, prompts, false, kInt8Tokens);
  };
  constexpr const char* kMasked = "flex(kv <= q and q - kv < 40; score - 0.02 * (q - kv))";
  const Variant batch{.name = "batch", .steps_in_flight = 2, .batch = 32, .max_batched_tokens = 37};
  const RunResult plain = run({.name = "alone"}, kMasked, "");
  const RunResult drafted = run(batch, kMasked, "eagle3");
  EXPECT_EQ(count_differences(plain, run(batch, kMasked, ""), "batch"), 0);
  EXPECT_EQ(count_differences(plain, drafted, "drafted"), 0);
  EXPECT_GT(drafted.stats.num_accepted_tokens, 0);
  EXPECT_NE(run({.name = "alone"}, "portable", "").ids, plain.ids) << "the mask hides nothing";
}

// Latents have a scale for each 128 of their codes.
TEST(Int8KvLatents, DraftsBatchesAndHitsChangeNothing) {
  constexpr const char* kKind = "mtp_chained";
  const test::DialledSet& set = test::DialledSet::of("DeepseekV3ForCausalLM");
  const std::vector<Request> requests = dialled_requests(set, kKind, num_test_prompts(5), 24);
  const RunResult plain = run_dialled(int8({.drafter = kKind}), set, requests);
  for (Variant variant :
       {Variant{.name = "alone"}, Variant{.name = "chunked", .batch = 32, .max_batched_tokens = 23},
        Variant{.name = "hits",
                .steps_in_flight = 2,
                .batch = 32,
                .prefix_caching = true,
                .warm = true}}) {
    variant.num_draft_tokens = 4;
    variant.drafter = kKind;
    const RunResult other = run_dialled(int8(variant), set, requests);
    EXPECT_EQ(count_differences(plain, other, variant.name), 0);
    EXPECT_GT(other.stats.num_accepted_tokens, 0) << variant.name;
  }
}

// Other kernels than those of the model's own type would hide a flag that does nothing.
TEST(Int8KvWithoutDrafts, IsNotTheModelsType) {
  EngineConfig config = config_of({}, bundled_model());
  config.num_gpu_blocks_override = 0;
  config.kv_cache_memory_bytes = int64_t{8} << 20;
  config.dtype = "bfloat16";
  std::unique_ptr<Engine> engine;
  ASSERT_TRUE(make_engine(config, &engine).ok());
  const int plain = engine->info().num_blocks;
  config.kv_cache_dtype = "int8";
  ASSERT_TRUE(make_engine(config, &engine).ok());
  // Head size 32: 36 bytes instead of 64, and the ids of tokens as before.
  EXPECT_GT(engine->info().num_blocks, plain * 1.7);
}

}  // namespace
}  // namespace foretoken
