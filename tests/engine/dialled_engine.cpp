#include "engine/dialled_engine.h"

#include <cstdio>
#include <cstdlib>

#include "support/folders.h"
#include "support/scratch_folder.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

constexpr int kVocab = 512;

struct WrittenCheckpoint {
  test::ScratchFolder folder;
  WrittenCheckpoint() {
    DialledShape shape;
    shape.vocab_size = kVocab;
    const Status status = write_dialled_checkpoint(folder.path(), shape);
    EXPECT_TRUE(status.ok()) << status.message();
  }
};

}  // namespace

std::string engine_test_device() {
  static const std::string device = [] {
    const char* name = std::getenv("FORETOKEN_TEST_DEVICE");
    std::printf("device=%s\n", name != nullptr ? name : "cpu");
    return std::string(name != nullptr ? name : "cpu");
  }();
  return device;
}

SpeculativeConfig ngram_config(int num_draft_tokens) {
  SpeculativeConfig config;
  config.method = "ngram";
  config.num_speculative_tokens = num_draft_tokens;
  config.prompt_lookup_min = 1;
  config.prompt_lookup_max = 4;
  config.length_policy = "fixed";
  return config;
}

std::string bundled_model_folder() {
  return std::string(foretoken::kSourceFolder) + "/models/foretoken-7m";
}

const std::string& DialledEngine::folder() {
  static const WrittenCheckpoint checkpoint;
  return checkpoint.folder.path();
}

const DialledCycle& DialledEngine::cycle() {
  static const DialledCycle cycle(kVocab, DialledShape().seed);
  return cycle;
}

EngineConfig DialledEngine::config(int num_draft_tokens) {
  EngineConfig config;
  config.model = folder();
  config.device = engine_test_device();
  config.max_model_len = 512;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 64;
  config.num_gpu_blocks_override = 8 * 32;
  if (num_draft_tokens > 0) config.speculative = {ngram_config(num_draft_tokens)};
  return config;
}

std::unique_ptr<Engine> DialledEngine::make(const EngineConfig& config) {
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(config, &engine);
  EXPECT_TRUE(status.ok()) << status.message();
  return engine;
}

void DialledRanks::SetUp() {
  if (const std::string missing = missing_devices(2); !missing.empty()) GTEST_SKIP() << missing;
}

Request DialledEngine::request(int begin, int length, int max_tokens) {
  Request request;
  for (int i = begin; i < begin + length; ++i) request.prompt_token_ids.push_back(cycle().at(i));
  request.sampling.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

std::vector<int32_t> DialledEngine::expected(int begin, int length, int max_tokens) {
  std::vector<int32_t> ids;
  for (int i = 0; i < max_tokens; ++i) ids.push_back(cycle().at(begin + length + i));
  return ids;
}

}  // namespace foretoken
