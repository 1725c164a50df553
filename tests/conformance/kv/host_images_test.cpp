#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "conformance/harness.h"
#include "conformance/layouts.h"
#include "model/golden.h"

// What belongs to a prefix beside the blocks of its positions comes back from host memory with
// them: windowed blocks, states of recurrent layers, and both (DeepSeek V4). Ids, and what is found
// of prompts, are those of a device with room for all, whoever drafts, preempted, for several salts
// and on several ranks.

namespace foretoken {
namespace {

constexpr int kImageBlocks = 11;  // hardly more than one sequence
constexpr int kImageTokens = 24;

struct ImageRun {
  RunResult first;
  RunResult second;  // of the same prompts once more
  OffloadStats offload;
};

// Pieces of the golden texts; each is asked for with two salts, and half of them are sampled.
std::vector<Request> image_requests(const test::GoldenCase& golden, int count) {
  std::vector<int32_t> text;
  for (const nlohmann::json& entry : *golden.prompts) {
    for (const char* part : {"ids", "greedy"}) {
      const auto ids = entry.at(part).get<std::vector<int32_t>>();
      text.insert(text.end(), ids.begin(), ids.end());
    }
  }
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request& request = requests.emplace_back();
    const int length = 40 + 13 * i % 70;
    const int begin = 29 * (i / 2) % (static_cast<int>(text.size()) - length);
    request.prompt_token_ids.assign(text.begin() + begin, text.begin() + begin + length);
    request.cache_salt = i % 2 == 0 ? "" : "another";
    request.sampling.max_tokens = kImageTokens;
    request.sampling.temperature = i % 4 < 2 ? 0.0f : 0.7f;
    request.sampling.seed = 60 + static_cast<uint64_t>(i);
    request.sampling.ignore_eos = true;
  }
  return requests;
}

class HostImages : public testing::TestWithParam<test::GoldenCase> {
 protected:
  static EngineConfig config(const Variant& variant, const Layout& layout = {}) {
    EngineConfig made = config_of(variant, GetParam());
    layout.apply(made);
    return made;
  }
  static Variant drafting(Variant variant) {
    variant.num_draft_tokens = 3;
    variant.drafter = "draft_model";
    variant.draft_model = GetParam().folder;
    return variant;
  }
  // A few blocks and snapshots on the device, all else in host memory.
  static EngineConfig moving(Variant variant, const Layout& layout = {}) {
    variant.num_blocks = kImageBlocks;
    variant.prefix_caching = true;
    EngineConfig made = config(variant, layout);
    made.kv_offloading_size = 0.1;
    made.max_state_snapshots = 2;
    return made;
  }
  static EngineConfig roomy(Variant variant, const Layout& layout = {}) {
    variant.prefix_caching = true;
    EngineConfig made = config(variant, layout);
    made.max_state_snapshots = 200;
    return made;
  }
  static ImageRun run(const EngineConfig& config, const Variant& variant, int count) {
    ImageRun result;
    std::unique_ptr<Engine> engine;
    const Status made = make_engine(config, &engine);
    EXPECT_TRUE(made.ok()) << made.message();
    if (!made.ok()) return result;
    const std::vector<Request> requests = image_requests(GetParam(), count);
    result.first = run_requests(*engine, variant, requests);
    result.second = run_requests(*engine, variant, requests);
    expect_all_free(*engine);
    result.offload = engine->stats().offload;
    return result;
  }
  static void expect_moves(const ImageRun& moved, const std::string& what) {
    std::cout << "device=" << test_device_name() << " " << what << ": queried "
              << moved.offload.num_queried_tokens << ", hit " << moved.offload.num_hit_tokens
              << ", bytes out " << moved.offload.bytes_out << ", in " << moved.offload.bytes_in
              << ", accepted " << moved.second.stats.num_accepted_tokens << "\n";
    EXPECT_GT(moved.offload.num_hit_tokens, 0) << what;
    EXPECT_LE(moved.offload.num_hit_tokens, moved.offload.num_queried_tokens) << what;
    EXPECT_GT(moved.offload.bytes_in, 0) << what;
  }
};

// One after another, so that what a request finds is known.
TEST_P(HostImages, AreAsGoodAsTheDevice) {
  for (const Variant& variant :
       {Variant{.name = "plain", .steps_in_flight = 2}, drafting({.steps_in_flight = 2})}) {
    const ImageRun all = run(roomy(variant), variant, 8);
    const ImageRun moved = run(moving(variant), variant, 8);
    const std::string what = GetParam().name + ", " + variant.describe();
    EXPECT_EQ(count_differences(all.first, moved.first, what), 0);
    EXPECT_EQ(count_differences(all.first, moved.second, what), 0);
    EXPECT_EQ(count_differences(all.second, moved.second, what), 0);
    EXPECT_EQ(all.second.stats.num_cached_tokens, moved.second.stats.num_cached_tokens) << what;
    EXPECT_EQ(all.second.stats.num_draft_tokens, moved.second.stats.num_draft_tokens) << what;
    EXPECT_EQ(all.second.stats.num_accepted_tokens, moved.second.stats.num_accepted_tokens) << what;
    EXPECT_GT(all.second.stats.num_cached_tokens, 0) << what;
    expect_moves(moved, what);
  }
}

// All at once in so few blocks that sequences are preempted and find what is theirs again.
TEST_P(HostImages, PreemptedSequencesGoOnAsTheyWere) {
  const Variant plain{.name = "plain"};
  const ImageRun alone = run(config(plain), plain, 8);
  for (Variant variant :
       {Variant{.num_draft_tokens = 4, .steps_in_flight = 1}, drafting({.steps_in_flight = 2}),
        Variant{.name = "three in flight", .steps_in_flight = 3, .max_batched_tokens = 23}}) {
    variant.batch = 8;
    const ImageRun moved = run(moving(variant), variant, 8);
    const std::string what = GetParam().name + " preempted, " + variant.describe();
    EXPECT_EQ(count_differences(alone.first, moved.first, what), 0);
    EXPECT_EQ(count_differences(alone.first, moved.second, what), 0);
    EXPECT_GT(moved.first.stats.num_preemptions + moved.second.stats.num_preemptions, 0) << what;
    expect_moves(moved, what);
  }
}

// Each rank moves its part. Ranks whose sums have other bits are compared with themselves.
TEST_P(HostImages, RanksMoveTheirParts) {
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.pp = 2}}) {
    if (!missing_for(layout).empty()) continue;
    std::unique_ptr<Engine> engine;
    if (!make_engine(config({}, layout), &engine).ok()) continue;  // not divided so
    engine.reset();
    const Variant variant = drafting({.steps_in_flight = 2});
    const ImageRun all = run(roomy(variant, layout), variant, 6);
    const ImageRun moved = run(moving(variant, layout), variant, 6);
    const std::string what = GetParam().name + ", " + layout.name();
    EXPECT_EQ(count_differences(all.first, moved.first, what), 0);
    EXPECT_EQ(count_differences(all.first, moved.second, what), 0);
    expect_moves(moved, what);
  }
}

std::vector<test::GoldenCase> one_of_each(std::initializer_list<const char*> models) {
  std::vector<test::GoldenCase> cases;
  for (const char* model : models) cases.push_back(test::golden_cases({model}).front());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, HostImages,
                         testing::ValuesIn(one_of_each({"gemma2", "gemma3", "gemma4", "gpt_oss",
                                                        "mistral", "cohere2", "olmo3", "llama4",
                                                        "deci", "qwen3_next", "qwen3_5", "mamba2",
                                                        "nemotron_h", "lfm2", "deepseek_v4"})),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace foretoken
