#pragma once
#include <foretoken/engine.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "dialled/dialled_writer.h"

namespace foretoken {

// Engines on a dialled checkpoint: the greedy output is known before it runs. Each process writes
// the checkpoint once, into a folder of its own.
class DialledEngine : public testing::Test {
 protected:
  static const std::string& folder();
  static const DialledCycle& cycle();

  // FORETOKEN_TEST_DEVICE (default cpu), room for every test here, n-gram drafts when
  // `num_draft_tokens` > 0.
  static EngineConfig config(int num_draft_tokens);
  static std::unique_ptr<Engine> make(const EngineConfig& config);

  // Greedy, with the ids at places [begin, begin + length) of the cycle as the prompt.
  static Request request(int begin, int length, int max_tokens);
  // What it generates.
  static std::vector<int32_t> expected(int begin, int length, int max_tokens);
};

// Skipped where two ranks cannot run.
class DialledRanks : public DialledEngine {
 protected:
  void SetUp() override;
};

std::string engine_test_device();
std::string bundled_model_folder();
// N-gram drafts of any match, always as many as there can be.
SpeculativeConfig ngram_config(int num_draft_tokens);

}  // namespace foretoken
