#include <gtest/gtest.h>

#include <bit>
#include <iostream>

#include "conformance/field_draws.h"
#include "conformance/harness.h"
#include "dialled/dialled_writer.h"
#include "support/scratch_folder.h"

// Every field alone and in random combinations: whatever shares the batch, however many steps are
// in flight, with and without drafts, chunks, preemption, prefix hits and graphs, the outputs are
// equal bit for bit.

namespace foretoken {
namespace {

constexpr int kDraws = 1000;

using Outputs = std::vector<RequestOutput>;

bool same_float(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

bool same_logprob(const Logprob& a, const Logprob& b) {
  return a.token_id == b.token_id && same_float(a.logprob, b.logprob) && a.rank == b.rank &&
         a.decoded_token == b.decoded_token;
}

bool same_rows(const std::vector<TokenLogprobs>& a, const std::vector<TokenLogprobs>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return same_logprob(x.token, y.token) &&
           std::equal(x.top.begin(), x.top.end(), y.top.begin(), y.top.end(), same_logprob);
  });
}

// The first thing that differs, or empty.
std::string difference(const RequestOutput& a, const RequestOutput& b) {
  if (a.request_id != b.request_id || a.index != b.index) return "order";
  if (a.token_ids != b.token_ids) return "token ids";
  if (a.text != b.text) return "text";
  if (a.finish_reason != b.finish_reason) return "finish reason; " + b.status.message();
  if (a.stop_reason != b.stop_reason) return "stop reason";
  if (a.status.message() != b.status.message()) return "status";
  if (!same_rows(a.logprobs, b.logprobs)) return "logprobs";
  if (!same_rows(a.prompt_logprobs, b.prompt_logprobs)) return "prompt logprobs";
  const bool same = std::equal(a.embedding.begin(), a.embedding.end(), b.embedding.begin(),
                               b.embedding.end(), same_float);
  if (!same) return "embedding";
  if (a.stats.num_output_tokens != b.stats.num_output_tokens) return "output tokens";
  return {};
}

int num_draws() { return num_test_prompts(200) < 200 ? 100 : kDraws; }

// Ids of requests are given, so that messages do not depend on the engine's own numbers.
std::vector<Request> draws_from(int begin, int end, bool speculates, int vocab_size) {
  std::vector<Request> requests;
  for (int i = begin; i < end; ++i) {
    Request request = draw_request(i, vocab_size);
    request.request_id = "draw-" + std::to_string(i);
    if (!speculates) request.speculative = {};
    requests.push_back(std::move(request));
  }
  return requests;
}

struct FieldsRun {
  Outputs outputs;
  RequestStats stats;
};

FieldsRun run_draws(const Variant& variant, int count, const std::string& model) {
  FieldsRun run;
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config_of(variant, model), &engine);
  EXPECT_TRUE(made.ok()) << made.message();
  if (!made.ok()) return run;
  const int vocab_size = engine->info().vocab_size;
  for (int begin = 0; begin < count; begin += variant.batch) {
    const int end = std::min(begin + variant.batch, count);
    for (RequestOutput& output :
         engine->generate(draws_from(begin, end, variant.num_draft_tokens > 0, vocab_size))) {
      run.stats += output.stats;
      run.outputs.push_back(std::move(output));
    }
  }
  expect_all_free(*engine);
  return run;
}

const Outputs& base_outputs() {
  static const Outputs outputs =
      run_draws({.name = "base", .batch = 50}, num_draws(), bundled_model()).outputs;
  return outputs;
}

int count_different_outputs(const Outputs& base, const Outputs& other, const std::string& what) {
  int num_differing = 0;
  EXPECT_LE(other.size(), base.size()) << what;
  for (size_t i = 0; i < std::min(base.size(), other.size()); ++i) {
    const std::string where = difference(base[i], other[i]);
    if (where.empty()) continue;
    if (++num_differing > 3) continue;
    ADD_FAILURE() << what << ": " << base[i].request_id << ", choice " << base[i].index << ": "
                  << where << "; "
                  << describe(draw_request(std::stoi(base[i].request_id.substr(5))));
  }
  EXPECT_EQ(num_differing, 0) << what;
  return num_differing;
}

RequestStats expect_same(const Variant& variant, int count) {
  const FieldsRun other = run_draws(variant, count, bundled_model());
  const int num_differing =
      count_different_outputs(base_outputs(), other.outputs, variant.describe());
  std::cout << "device=" << test_device_name() << " " << variant.describe() << ": " << num_differing
            << " of " << other.outputs.size() << " choices differ, drafted "
            << other.stats.num_draft_tokens << ", accepted " << other.stats.num_accepted_tokens
            << ", preemptions " << other.stats.num_preemptions << ", cached "
            << other.stats.num_cached_tokens << "\n";
  return other.stats;
}

TEST(SamplingFields, AreAllDrawnAndMatter) {
  const auto& fields = field_draws();
  ASSERT_LT(fields.size(), static_cast<size_t>(num_draws()));
  int num_errors = 0;
  std::vector<int> reasons(5);
  for (const RequestOutput& output : base_outputs()) {
    ++reasons[static_cast<size_t>(output.finish_reason)];
    if (!output.status.ok()) ++num_errors;
    EXPECT_TRUE(output.finished);
  }
  EXPECT_EQ(num_errors, 0);
  EXPECT_GT(reasons[static_cast<size_t>(FinishReason::kStop)], 20);
  EXPECT_GT(reasons[static_cast<size_t>(FinishReason::kLength)], 20);
}

TEST(SamplingFields, WithDraftsAndTwoStepsInFlight) {
  const RequestStats stats = expect_same(
      {.name = "drafts", .num_draft_tokens = 4, .steps_in_flight = 2, .batch = 50}, num_draws());
  const double acceptance =
      static_cast<double>(stats.num_accepted_tokens) / static_cast<double>(stats.num_draft_tokens);
  EXPECT_GT(acceptance, 0.3);
  EXPECT_LT(acceptance, 0.95);
}

TEST(SamplingFields, WithDraftsChunksPreemptionAndPrefixHits) {
  const RequestStats stats = expect_same({.name = "everything",
                                          .num_draft_tokens = 3,
                                          .steps_in_flight = 3,
                                          .batch = 100,
                                          .max_batched_tokens = 24,
                                          .num_blocks = 8,
                                          .prefix_caching = true},
                                         num_draws());
  EXPECT_GT(stats.num_preemptions, 0);
  EXPECT_GT(stats.num_cached_tokens, 0);
}

TEST(SamplingFields, Eager) {
  expect_same({.name = "eager", .steps_in_flight = 2, .batch = 10, .eager = true}, num_draws() / 4);
}

TEST(SamplingFields, Alone) {
  expect_same({.name = "alone", .num_draft_tokens = 8, .batch = 1}, num_draws() / 10);
}

// Windows, soft caps and normed queries below the same fields.
class SamplingFieldsOf : public ::testing::TestWithParam<std::string> {};

TEST_P(SamplingFieldsOf, AreEqualWithDraftsChunksAndPreemption) {
  const test::ScratchFolder folder;
  DialledShape shape;
  shape.architecture = GetParam();
  ASSERT_TRUE(write_dialled_checkpoint(folder.path(), shape).ok());
  const int count = num_draws() / 10;
  const FieldsRun base = run_draws({.name = "base", .batch = 20}, count, folder.path());
  const Variant variant{.name = GetParam(),
                        .num_draft_tokens = 3,
                        .steps_in_flight = 2,
                        .batch = 50,
                        .max_batched_tokens = 24,
                        .num_blocks = 10,
                        .prefix_caching = true};
  const FieldsRun other = run_draws(variant, count, folder.path());
  EXPECT_EQ(base.outputs.size(), other.outputs.size());
  EXPECT_EQ(count_different_outputs(base.outputs, other.outputs, variant.describe()), 0);
}

INSTANTIATE_TEST_SUITE_P(All, SamplingFieldsOf, testing::ValuesIn(dialled_architectures()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace foretoken
