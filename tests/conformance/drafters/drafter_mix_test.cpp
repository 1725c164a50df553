#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "conformance/drafter_cases.h"
#include "draft/registry.h"

// Several drafters in one engine, of odd lengths and vocabularies, and requests that choose among
// them or do without: with prefix hits, chunks and preemption, at once.

namespace foretoken {
namespace {

constexpr int kFewMixBlocks = 27;  // hardly more than one sequence at full length

class Mix {
 public:
  explicit Mix(uint32_t seed) : random_(seed) {}

  int pick(std::initializer_list<int> values) { return values.begin()[random_() % values.size()]; }
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

  std::vector<SpeculativeConfig> drafters(const std::string& policy) {
    std::vector<std::string> names = drafter_names();
    std::shuffle(names.begin(), names.end(), random_);
    names.resize(static_cast<size_t>(pick({2, 3, 4})));
    std::vector<SpeculativeConfig> configs;
    for (const std::string& name : names) {
      SpeculativeConfig config = bundled_drafter(name, pick({1, 3, 5, 7, 16})).config;
      config.length_policy = policy;
      if (!declared_traits(name).looks_up) {
        config.draft_vocab_size = pick({0, 0, 1, 2, 700, 3072});
        config.draft_sample_method = chance(30) ? "probabilistic" : "greedy";
        config.max_model_len = pick({0, 0, 3, 60});
      }
      configs.push_back(std::move(config));
    }
    return configs;
  }
  std::vector<Request> requests(int count) {
    const std::vector<std::string> prompts = bench_prompts(count);
    std::vector<Request> all;
    for (int i = 0; i < count; ++i) {
      Request request;
      // Pieces that others begin with too.
      request.prompt = prompts[static_cast<size_t>(i / 2)].substr(0, chance(50) ? 90 : 200) +
                       (chance(50) ? prompts[static_cast<size_t>(i)].substr(0, 60) : "");
      request.sampling.max_tokens = pick({1, 9, 40, 90});
      request.sampling.temperature = chance(50) ? 0.0f : 0.8f;
      request.sampling.seed = random_();
      request.sampling.ignore_eos = chance(70);
      request.sampling.repetition_penalty = chance(20) ? 1.2f : 1.0f;
      all.push_back(std::move(request));
    }
    return all;
  }
  void choose(const std::vector<SpeculativeConfig>& drafters, std::vector<Request>& requests) {
    for (Request& request : requests) {
      SpeculativeParams& own = request.speculative;
      const SpeculativeConfig& drafter = drafters[random_() % drafters.size()];
      if (chance(15)) {
        own.enabled = false;
        continue;
      }
      if (chance(70)) own.method = drafter.method;
      if (chance(30)) own.num_speculative_tokens = pick({0, 1});
    }
  }

 private:
  std::mt19937 random_;
};

TEST(DrafterMix, SeveralDraftersAndRequestsThatChoose) {
  RequestStats all;
  const int num_mixes = num_test_prompts(200) < 200 ? 2 : 6;
  for (int i = 0; i < num_mixes; ++i) {
    Mix mix(static_cast<uint32_t>(i) + 1);
    std::vector<Request> requests = mix.requests(std::max(num_test_prompts(20), 10));
    const RunResult base = run_alone(config_of({.batch = 20}, bundled_model()), requests);
    const Variant variant{.steps_in_flight = mix.pick({1, 2, 3}),
                          .batch = mix.pick({3, 8, 20}),
                          .max_batched_tokens = mix.pick({5, 33, 128}),
                          .num_blocks = mix.pick({0, kFewMixBlocks, kFewMixBlocks}),
                          .prefix_caching = mix.chance(70)};
    EngineConfig config = config_of(variant, bundled_model());
    config.max_num_seqs = variant.batch;
    // Whether adaptive lengths draft at all depends on what a busy machine measures.
    config.speculative = mix.drafters(i % 2 == 0 ? "fixed" : "adaptive");
    mix.choose(config.speculative, requests);
    const RunResult other = run_alone(config, requests);
    EXPECT_EQ(count_differences(base, other, "mix " + std::to_string(i)), 0);
    all += other.stats;
  }
  std::cout << "device=" << test_device_name() << " mixes: drafted " << all.num_draft_tokens
            << ", accepted " << all.num_accepted_tokens << ", preemptions " << all.num_preemptions
            << ", cached tokens " << all.num_cached_tokens << "\n";
  EXPECT_GT(all.num_accepted_tokens, 0);
  if (num_test_prompts(200) < 200) return;
  EXPECT_GT(all.num_accepted_tokens, 100);
  EXPECT_GT(all.num_cached_tokens, 0);
  EXPECT_GT(all.num_preemptions, 0);
}

}  // namespace
}  // namespace foretoken
