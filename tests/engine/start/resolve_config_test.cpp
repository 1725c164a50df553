#include "engine/start/resolve_config.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/devices/open_device.h"

namespace foretoken {
namespace {

class ResolveConfig : public testing::Test {
 protected:
  void SetUp() override {
    auto device = open_device(DeviceType::kCpu, 0, 1);
    ASSERT_TRUE(device.ok());
    device_ = std::move(device).value();
    model_.max_position_embeddings = 4096;
    model_.max_context = 4096;
  }

  Status status_of(const std::function<void(EngineConfig&)>& change) const {
    EngineConfig config;
    change(config);
    return resolve_config(config, *device_, model_).status();
  }
  void expect_refused(const std::function<void(EngineConfig&)>& change, const char* part) const {
    const Status status = status_of(change);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << part;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }

  std::unique_ptr<Device> device_;
  ModelConfig model_;
};

TEST_F(ResolveConfig, FillsInWhatIsAutomatic) {
  const auto resolved = resolve_config({}, *device_, model_);
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  EXPECT_EQ(resolved.value().max_model_len, 4096);
  EXPECT_EQ(resolved.value().max_num_seqs, 64);
  EXPECT_EQ(resolved.value().max_num_batched_tokens, 512);
  EXPECT_EQ(resolved.value().long_prefill_token_threshold, -1);
  EXPECT_EQ(resolved.value().attention.backend, "portable");
  EXPECT_EQ(resolved.value().kv_format, KvFormat::kPlain);
  EXPECT_EQ(resolved.value().policy, SchedulingPolicy::kFcfs);
  EXPECT_EQ(resolved.value().length_mode, LengthMode::kOff);
  EXPECT_EQ(resolved.value().acceptance, AcceptanceMethod::kCoupled);
}

TEST_F(ResolveConfig, KeepsWhatIsGiven) {
  EngineConfig config;
  config.max_model_len = 100;
  config.max_num_seqs = 3;
  config.max_num_batched_tokens = 7;
  config.block_size = 32;
  config.kv_cache_dtype = "int8_per_token_head";
  config.scheduling_policy = "priority";
  const auto resolved = resolve_config(config, *device_, model_);
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  EXPECT_EQ(resolved.value().max_model_len, 100);
  EXPECT_EQ(resolved.value().max_num_seqs, 3);
  EXPECT_EQ(resolved.value().max_num_batched_tokens, 7);
  EXPECT_EQ(resolved.value().block_size, 32);
  EXPECT_EQ(resolved.value().kv_format, KvFormat::kInt8);
  EXPECT_EQ(resolved.value().policy, SchedulingPolicy::kPriority);
}

TEST_F(ResolveConfig, TakesTheNearestOfWhatThereIs) {
  EngineConfig config;
  config.max_num_seqs = 5000;
  config.max_num_batched_tokens = 100'000;
  config.block_size = 128;
  const auto resolved = resolve_config(config, *device_, model_);
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  EXPECT_EQ(resolved.value().max_num_seqs, 4096);
  EXPECT_EQ(resolved.value().max_num_batched_tokens, 65536);
  EXPECT_EQ(resolved.value().block_size, 64);
}

TEST_F(ResolveConfig, WordsOfTheDraftersBecomeTypes) {
  EngineConfig config;
  SpeculativeConfig& drafter = config.speculative.emplace_back();
  drafter.method = "ngram";
  drafter.num_speculative_tokens = 3;
  drafter.length_policy = "fixed";
  drafter.rejection_sample_method = "synthetic";
  drafter.synthetic_acceptance_length = 2;
  const auto resolved = resolve_config(config, *device_, model_);
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  EXPECT_EQ(resolved.value().length_mode, LengthMode::kFixed);
  EXPECT_EQ(resolved.value().acceptance, AcceptanceMethod::kSynthetic);
}

TEST_F(ResolveConfig, TheThresholdOfLongPromptsStaysAsGiven) {
  EngineConfig config;
  config.long_prefill_token_threshold = 0;
  EXPECT_EQ(resolve_config(config, *device_, model_).value().long_prefill_token_threshold, 0);
  config.long_prefill_token_threshold = 100;
  EXPECT_EQ(resolve_config(config, *device_, model_).value().long_prefill_token_threshold, 100);
  config.long_prefill_token_threshold = -2;
  EXPECT_FALSE(resolve_config(config, *device_, model_).ok());
}

TEST_F(ResolveConfig, AnAutomaticLengthWaitsForTheModel) {
  EngineConfig config;
  config.max_model_len = -1;
  const auto resolved = resolve_config(config, *device_, model_);
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  EXPECT_EQ(resolved.value().max_model_len, -1);
}

// As many as a step can make, with a warning, where the vocabulary is larger.
TEST_F(ResolveConfig, AllLogprobsAreThoseThatAStepCanMake) {
  for (const auto& [vocabulary, wanted, given] : {std::tuple(300, -1, 300),
                                                  {300, 5000, 300},
                                                  {5000, -1, kMaxLogprobs},
                                                  {5000, 4000, kMaxLogprobs},
                                                  {5000, 20, 20},
                                                  {5000, 0, 0}}) {
    EngineConfig config;
    config.max_logprobs = wanted;
    model_.vocab_size = vocabulary;
    const auto resolved = resolve_config(config, *device_, model_);
    ASSERT_TRUE(resolved.ok()) << resolved.status().message();
    EXPECT_EQ(resolved.value().max_logprobs, given) << wanted << " of " << vocabulary;
  }
}

TEST_F(ResolveConfig, RefusesWithTheFlagsName) {
  expect_refused([](EngineConfig& c) { c.max_model_len = 4097; }, "--max-model-len 4097");
  expect_refused([](EngineConfig& c) { c.max_model_len = -2; }, "--max-model-len");
  expect_refused([](EngineConfig& c) { c.max_num_seqs = -1; }, "--max-num-seqs");
  expect_refused([](EngineConfig& c) { c.max_num_batched_tokens = -4; }, "--max-num-batched");
  expect_refused([](EngineConfig& c) { c.steps_in_flight = 0; }, "--steps-in-flight");
  expect_refused([](EngineConfig& c) { c.max_logprobs = -2; }, "--max-logprobs -2");
  expect_refused([](EngineConfig& c) { c.max_processor_rows = -1; }, "--max-processor-rows");
  expect_refused([](EngineConfig& c) { c.scheduling_policy = "lifo"; }, "fcfs or priority");
  expect_refused([](EngineConfig& c) { c.steps_in_flight = 4; }, "use 1 to 3");
  expect_refused([](EngineConfig& c) { c.block_size = -16; }, "--block-size -16");
  expect_refused([](EngineConfig& c) { c.gpu_memory_utilization = 0; }, "--gpu-memory");
  expect_refused([](EngineConfig& c) { c.batch_invariant = "maybe"; }, "--batch-invariant");
}

// Before anything is loaded.
TEST_F(ResolveConfig, PartsThatDoNotFitAreRefused) {
  const auto offloads = [](EngineConfig& c) { c.kv_offloading_size = 1; };
  EXPECT_TRUE(status_of(offloads).ok()) << status_of(offloads).message();
  expect_refused(
      [&](EngineConfig& c) {
        offloads(c);
        c.attention_backend = "flex(kv <= q or prompt; )";
      },
      "use a mask of q and kv");
  expect_refused([](EngineConfig& c) { c.lora_modules.emplace_back(); }, "add --enable-lora");
  model_.layers.emplace_back().window = 16;
  EXPECT_TRUE(status_of(offloads).ok()) << status_of(offloads).message();
}

TEST_F(ResolveConfig, OpensOnlyKnownDevices) {
  EngineConfig config;
  EXPECT_TRUE(open_configured_device(config).ok());
  config.device = "tpu";
  const auto device = open_configured_device(config);
  EXPECT_EQ(device.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(device.status().message().find("use cpu or cuda"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
