#include "draft/suffix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "draft/draft_context.h"
#include "kernels/draft/suffix.h"
#include "support/op_queue.h"

namespace foretoken::test {
namespace {

SpeculativeConfig suffix_config(int num_draft_tokens,
                                const std::map<std::string, double>& fields = {}) {
  SpeculativeConfig config;
  config.method = "suffix";
  config.num_speculative_tokens = num_draft_tokens;
  for (const auto& [name, value] : fields) config.method_fields["suffix_decoding_" + name] = value;
  return config;
}

Result<std::unique_ptr<Drafter>> make_suffix(const SpeculativeConfig& config) {
  static const DraftContext context;
  return make_suffix_drafter(context.context(config));
}

SuffixArgs suffix_proposed_with(const SpeculativeConfig& config, const DraftShape& shape) {
  const auto drafter = make_suffix(config);
  EXPECT_TRUE(drafter.ok()) << drafter.status().message();
  ArgsQueue<SuffixArgs> queue;
  if (!drafter.ok()) return queue.last;
  int32_t plan = 0;
  SlotState slot{};
  SlotParams params{};
  SpanState span{};
  DraftStep step;
  step.plan = &plan;
  step.batch.slots = &slot;
  step.batch.params = &params;
  step.batch.block_size = 16;
  step.tensors.spans = &span;
  step.index = 2;
  drafter.value()->propose(queue, step, shape);
  EXPECT_EQ(queue.num_ops, 1);
  EXPECT_EQ(queue.last.plan, &plan);
  EXPECT_EQ(queue.last.spans, &span);
  EXPECT_EQ(queue.last.drafter, 2);
  return queue.last;
}

TEST(SuffixDrafter, ProposesWithVllmsDefaults) {
  const SuffixArgs args = suffix_proposed_with(suffix_config(5), {.num_draft_tokens = 5});
  EXPECT_EQ(args.num_draft_tokens, 5);
  EXPECT_EQ(args.max_depth, 24);
  EXPECT_EQ(args.max_factor, 1.0f);
  EXPECT_EQ(args.min_chance, 6553);
  EXPECT_GT(args.draft_max_len, 0);
  EXPECT_EQ(args.table.max_age, 10000u);
  EXPECT_NE(args.table.entries, nullptr);
}

TEST(SuffixDrafter, ProposesWithItsFields) {
  const SuffixArgs args = suffix_proposed_with(suffix_config(3, {{"max_tree_depth", 40},
                                                                 {"max_spec_factor", 2.5},
                                                                 {"min_token_prob", 0.5},
                                                                 {"max_cached_requests", 7}}),
                                               {.num_draft_tokens = 2});
  EXPECT_EQ(args.max_depth, 40);
  EXPECT_EQ(args.max_factor, 2.5f);
  EXPECT_EQ(args.min_chance, 32767);
  EXPECT_EQ(args.table.max_age, 7u);
}

TEST(SuffixDrafter, AtRestItLearns) {
  const SuffixArgs args = suffix_proposed_with(suffix_config(3), {.max_spans = 1});
  EXPECT_EQ(args.num_draft_tokens, 0);
  EXPECT_TRUE(make_suffix(suffix_config(3)).value()->traits().learns);
}

TEST(SuffixDrafter, ItsMemoryIsFixed) {
  for (const double requests : {1.0, 10000.0, 1e6}) {
    const auto drafter = make_suffix(suffix_config(4, {{"max_cached_requests", requests}}));
    EXPECT_GE(drafter.value()->memory_bytes(), kSuffixTableBytes);
    EXPECT_LE(drafter.value()->memory_bytes(), kSuffixTableBytes + 512);
    EXPECT_EQ(drafter.value()->bytes_per_block(16), 0);
    EXPECT_TRUE(drafter.value()->take_memory(100, 16).ok());
    EXPECT_EQ(drafter.value()->kv_cache(), nullptr);
  }
}

TEST(SuffixDrafter, WithoutCachedRequestsThereIsNoTable) {
  const SpeculativeConfig config = suffix_config(4, {{"max_cached_requests", 0}});
  EXPECT_EQ(make_suffix(config).value()->memory_bytes(), 0);
  EXPECT_EQ(suffix_proposed_with(config, {.num_draft_tokens = 4}).table.num_buckets, 0u);
}

TEST(SuffixDrafter, TheNumberOfDraftsMayBeLeftOut) {
  const auto most = [](const SpeculativeConfig& config) {
    return make_suffix(config).value()->traits().max_draft_tokens;
  };
  EXPECT_EQ(most(suffix_config(0)), kMaxOwnDrafts);
  EXPECT_EQ(most(suffix_config(0, {{"max_tree_depth", 6}})), 6);
  EXPECT_EQ(most(suffix_config(9, {{"max_tree_depth", 6}})), 9);
}

TEST(SuffixDrafter, RefusesFieldsOutOfRange) {
  const std::pair<const char*, double> cases[] = {
      {"max_tree_depth", 0},        {"max_tree_depth", 65},    {"max_cached_requests", -1},
      {"max_cached_requests", 1e9}, {"max_spec_factor", -0.5}, {"max_spec_factor", 1e9},
      {"min_token_prob", 1.5},      {"min_token_prob", -0.1}};
  for (const auto& [name, value] : cases) {
    const Status status = check_suffix_fields(suffix_config(4, {{name, value}}));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name << " " << value;
    EXPECT_NE(status.message().find(std::string("suffix_decoding_") + name + " is "),
              std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("give a number from "), std::string::npos);
    EXPECT_FALSE(make_suffix(suffix_config(4, {{name, value}})).ok());
  }
}

}  // namespace
}  // namespace foretoken::test
