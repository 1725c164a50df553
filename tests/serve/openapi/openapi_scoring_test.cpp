#include "serve/openapi/openapi_scoring.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(OpenApiScoring, WhatIsRequiredIsDescribed) {
  const json parts = openapi_more_parts({.fills_gaps = true});
  for (const char* name : {"ScoreRequest", "RerankRequest", "LlamaCompletionRequest",
                           "LlamaEmbeddingRequest", "InfillRequest", "TokenizeContent"}) {
    ASSERT_TRUE(parts.contains(name)) << name;
    for (const json& field : parts[name]["required"]) {
      EXPECT_TRUE(parts[name]["properties"].contains(field.get<std::string>())) << name;
    }
  }
  EXPECT_FALSE(openapi_more_parts({}).contains("InfillRequest"));
}

TEST(OpenApiScoring, CountsHaveTheBoundsOfTheModel) {
  const json parts = openapi_more_parts({.vocab_size = 50, .max_logprobs = 20});
  EXPECT_EQ(parts["NumProbs"]["maximum"], 20);
  EXPECT_TRUE(parts["PoolingRequest"]["properties"].contains("task"));
}

}  // namespace
}  // namespace foretoken
