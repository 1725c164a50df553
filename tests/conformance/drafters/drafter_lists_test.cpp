#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <ostream>

#include "conformance/drafter_cases.h"
#include "draft/registry.h"

// Every list of a look-up and another drafter, and some of both look-ups and a third, leave the ids
// as they are without speculation, with requests that choose the list, a part of it or nothing,
// prefix hits, chunks and preemption.

namespace foretoken {
namespace {

constexpr int kListTokens = 64;
constexpr int kFewListBlocks = 26;  // hardly more than one sequence at full length

struct ListCase {
  std::vector<std::string> members;  // look-ups, and what is last

  std::string joined(const char* with) const {
    std::string text;
    for (const std::string& member : members) text += (text.empty() ? "" : with) + member;
    return text;
  }
};
void PrintTo(const ListCase& list, std::ostream* out) { *out << list.joined("+"); }

std::vector<ListCase> list_cases() {
  std::vector<ListCase> cases;
  for (const DrafterEntry& lookup : drafters()) {
    for (const DrafterEntry& other : drafters()) {
      if (lookup.traits.looks_up && &lookup != &other) {
        cases.push_back({{lookup.name, other.name}});
      }
    }
  }
  cases.push_back({{"ngram", "suffix", "eagle3"}});
  cases.push_back({{"suffix", "ngram", "dspark"}});
  cases.push_back({{"ngram", "suffix", "medusa"}});
  return cases;
}

class DrafterLists : public ::testing::TestWithParam<ListCase> {
 protected:
  static std::vector<SpeculativeConfig> list(const std::string& policy) {
    std::vector<SpeculativeConfig> drafters;
    for (const std::string& member : GetParam().members) {
      drafters.push_back(bundled_drafter(member, &member == &last() ? 4 : 6).config);
      drafters.back().length_policy = policy;
      drafters.back().leads = &member != &last();
    }
    return drafters;
  }
  static const std::string& last() { return GetParam().members.back(); }
  // Plain prompts, and every second one said twice.
  static std::vector<Request> requests(bool sampled) {
    std::vector<std::string> prompts = bench_prompts(num_test_prompts(40));
    std::vector<Request> all;
    for (size_t i = 0; i < prompts.size(); ++i) {
      Request request;
      request.prompt =
          i % 2 == 0 ? prompts[i] : prompts[i].substr(0, 90) + prompts[i].substr(0, 90);
      request.sampling.max_tokens = kListTokens;
      request.sampling.temperature = sampled ? 0.8f : 0.0f;
      request.sampling.seed = i;
      all.push_back(std::move(request));
    }
    return all;
  }
  // Without speculation, run once for all lists.
  static const RunResult& base(bool sampled) {
    static std::map<bool, RunResult> results;
    const auto [at, is_new] = results.try_emplace(sampled);
    if (is_new) {
      at->second = run_alone(config_of({.batch = 32}, bundled_model()), requests(sampled));
    }
    return at->second;
  }
  static void expect_same(Variant variant, const std::string& policy,
                          const std::vector<Request>& requests) {
    EngineConfig config = config_of(variant, bundled_model());
    config.max_num_seqs = variant.batch;
    config.speculative = list(policy);
    const RunResult other = run_alone(config, requests);
    const std::string what = GetParam().joined("+") + ", " + variant.describe();
    const bool sampled = requests.front().sampling.temperature > 0;
    EXPECT_EQ(count_differences(base(sampled), other, what), 0);
    const auto& by_drafter = other.stats.num_draft_tokens_by_drafter;
    const auto& accepted = other.stats.num_accepted_tokens_by_drafter;
    std::cout << "device=" << test_device_name() << " " << what << ": preemptions "
              << other.stats.num_preemptions;
    int64_t sum = 0;
    for (size_t i = 0; i < GetParam().members.size(); ++i) {
      std::cout << ", " << GetParam().members[i] << " " << accepted[i] << " of " << by_drafter[i];
      sum += by_drafter[i];
    }
    std::cout << "\n";
    EXPECT_EQ(sum, other.stats.num_draft_tokens);
    if (policy != "fixed") return;
    EXPECT_GT(sum - by_drafter[GetParam().members.size() - 1], 0);
    if (!declared_traits(last()).looks_up) {
      EXPECT_GT(by_drafter[GetParam().members.size() - 1], 0);
    }
  }
};

TEST_P(DrafterLists, Greedy) {
  expect_same({.name = "list", .steps_in_flight = 2, .batch = 16}, "fixed", requests(false));
}

TEST_P(DrafterLists, SampledWithHitsAndChunks) {
  expect_same({.name = "sampled list",
               .steps_in_flight = 3,
               .batch = 8,
               .max_batched_tokens = 33,
               .prefix_caching = true},
              "fixed", requests(true));
}

TEST_P(DrafterLists, Preempted) {
  expect_same({.name = "preempted list",
               .steps_in_flight = 2,
               .batch = 16,
               .num_blocks = kFewListBlocks,
               .prefix_caching = true},
              "fixed", requests(false));
}

TEST_P(DrafterLists, Adaptive) {
  // Its step times are measured for each pair.
  const bool is_short = num_test_prompts(200) < 200;
  if (is_short && last() != "eagle3") GTEST_SKIP() << "few prompts";
  expect_same({.name = "adaptive list", .steps_in_flight = 2, .batch = 8}, "adaptive",
              requests(true));
}

TEST_P(DrafterLists, RequestsThatChoose) {
  std::vector<Request> all = requests(false);
  const std::string& first = GetParam().members.front();
  const std::string both = first + "+" + last();
  for (size_t i = 0; i < all.size(); ++i) {
    SpeculativeParams& own = all[i].speculative;
    if (i % 5 == 1) own.method = first;
    if (i % 5 == 2) own.method = last();
    if (i % 5 == 3) own.method = both;
    if (i % 5 == 4) own.enabled = false;
    if (i % 3 == 0 && i % 5 != 4) own.num_speculative_tokens = 2;
  }
  expect_same({.name = "chosen", .steps_in_flight = 2, .batch = 16}, "fixed", all);
}

INSTANTIATE_TEST_SUITE_P(All, DrafterLists, ::testing::ValuesIn(list_cases()),
                         [](const auto& param) { return param.param.joined("_"); });

}  // namespace
}  // namespace foretoken
