#include "engine/parallel/wire_fields.h"

#include <gtest/gtest.h>

#include "engine/parallel/wire_archive.h"

namespace foretoken {
namespace {

template <class T>
T sent(const T& value) {
  wire::Writer writer;
  writer(value);
  wire::Reader reader(writer.bytes());
  T read;
  reader(read);
  EXPECT_TRUE(reader.status().ok());
  return read;
}

// That no member is forgotten the compiler sees; here that each arrives in its own place.
TEST(WireFields, ARequestArrivesAsItWas) {
  Request request;
  request.request_id = "id";
  request.prompt_token_ids = {3, 4};
  request.truncate_prompt_tokens = -1;
  request.sampling.seed = uint64_t{1} << 63;
  request.sampling.logit_bias = {{5, -2.0f}};
  request.sampling.allowed_token_ids = std::vector<int32_t>{};
  request.sampling.structured_outputs.emplace().regex = "a+";
  request.sampling.stop = {"x", "y"};
  request.sampling.detokenize = false;
  request.speculative.enabled = false;
  request.pooling = Pooling::kMean;
  request.priority = -2;
  request.timeout_seconds = 1.5;
  request.adapter = "mine";
  request.reasoning.closes = {"</think>"};
  const Request read = sent(request);
  EXPECT_EQ(read.request_id, "id");
  EXPECT_EQ(read.prompt_token_ids, request.prompt_token_ids);
  EXPECT_EQ(read.truncate_prompt_tokens, -1);
  EXPECT_EQ(read.sampling.seed, request.sampling.seed);
  EXPECT_EQ(read.sampling.logit_bias, request.sampling.logit_bias);
  ASSERT_TRUE(read.sampling.allowed_token_ids && read.sampling.structured_outputs);
  EXPECT_EQ(read.sampling.structured_outputs->regex, "a+");
  EXPECT_TRUE(read.sampling.structured_outputs->strict_schemas);
  EXPECT_EQ(read.sampling.stop, request.sampling.stop);
  EXPECT_FALSE(read.sampling.detokenize);
  EXPECT_TRUE(read.sampling.skip_special_tokens);
  EXPECT_EQ(read.speculative.enabled, false);
  EXPECT_EQ(read.pooling, Pooling::kMean);
  EXPECT_EQ(read.priority, -2);
  EXPECT_EQ(read.timeout_seconds, 1.5);
  EXPECT_EQ(read.adapter, "mine");
  EXPECT_EQ(read.reasoning.closes, request.reasoning.closes);
}

TEST(WireFields, OutputsAndCountsArriveAsTheyWere) {
  RequestOutput output;
  output.index = 2;
  output.token_ids = {1, 2};
  output.logprobs = {{{.token_id = 1, .logprob = -0.5f, .rank = 1, .decoded_token = "a"}, {}}};
  output.finish_reason = FinishReason::kLength;
  output.status = aborted("why");
  output.stats.num_draft_tokens_per_pos[3] = 9;
  const RequestOutput read = sent(output);
  EXPECT_EQ(read.index, 2);
  EXPECT_EQ(read.token_ids, output.token_ids);
  ASSERT_EQ(read.logprobs.size(), 1u);
  EXPECT_EQ(read.logprobs[0].token.decoded_token, "a");
  EXPECT_EQ(read.finish_reason, FinishReason::kLength);
  EXPECT_EQ(read.status.message(), "why");
  EXPECT_EQ(read.stats.num_draft_tokens_per_pos[3], 9);
  EngineStats stats;
  stats.step_tokens.num_steps[1] = 4;
  stats.offload.bytes_in = 8;
  stats.engines.resize(2);
  stats.engines[1].num_free_slots = 3;
  EXPECT_EQ(sent(stats).step_tokens.num_steps[1], 4);
  EXPECT_EQ(sent(stats).offload.bytes_in, 8);
  EXPECT_EQ(sent(stats).engines.at(1).num_free_slots, 3);
  EngineInfo info;
  info.num_blocks = 77;
  info.drafters = {{.name = "mtp", .num_speculative_tokens = 3}};
  info.start_phases = {{"weights", 0.5}};
  EXPECT_EQ(sent(info).num_blocks, 77);
  EXPECT_EQ(sent(info).drafters.at(0).name, "mtp");
  EXPECT_EQ(sent(info).start_phases.at(0).seconds, 0.5);
  EXPECT_EQ(sent(LoraModule{"a", "b", "c"}).path, "b");
}

}  // namespace
}  // namespace foretoken
