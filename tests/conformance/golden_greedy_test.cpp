#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/harness.h"

// Greedy ids of Hugging Face transformers in fp32 arithmetic (tests/golden/README.md), through the
// whole engine with drafts and two steps in flight.

namespace foretoken {
namespace {

void expect_greedy_ids(const std::string& folder, const std::string& name, const char* kind) {
  std::ifstream file(std::string(FORETOKEN_SOURCE_DIR) + "/tests/golden/" + name + "/golden.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  EngineConfig config = config_of({.num_drafts = 4, .steps_in_flight = 2}, folder);
  config.max_model_len = 0;
  config.dtype = "float32";
  config.skip_tokenizer_init = true;
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  std::vector<Request> requests;
  for (const nlohmann::json& entry : golden.at(kind)) {
    Request request;
    request.prompt_token_ids = entry.at("ids").get<std::vector<int32_t>>();
    request.sampling.max_tokens = static_cast<int>(entry.at("greedy").size());
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    requests.push_back(std::move(request));
  }
  const std::vector<RequestOutput> outputs = engine->generate(std::move(requests));
  for (size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_TRUE(outputs[i].status.ok()) << outputs[i].status.message();
    EXPECT_EQ(outputs[i].token_ids, golden.at(kind)[i].at("greedy").get<std::vector<int32_t>>())
        << "prompt " << i;
  }
}

TEST(GoldenGreedy, TinyLlama) {
  expect_greedy_ids(std::string(FORETOKEN_SOURCE_DIR) + "/tests/golden/tiny-llama", "tiny-llama",
                    "fp32");
}

TEST(GoldenGreedy, BundledModel) {
  expect_greedy_ids(bundled_model(), "foretoken-3m", "bf16_weights");
}

}  // namespace
}  // namespace foretoken
