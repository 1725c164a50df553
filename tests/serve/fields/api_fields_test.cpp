#include "serve/fields/api_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace foretoken {
namespace {

TEST(ApiFields, ABodyHasEachNameOnceWithASchema) {
  std::set<std::pair<unsigned, std::string>> seen;
  for (const ApiField& field : api_fields()) {
    EXPECT_TRUE(nlohmann::json::accept(field.schema)) << field.name;
    for (unsigned body = kChatBody; body <= kLlamaBody; body *= 2) {
      if ((field.bodies & body) == 0) continue;
      EXPECT_TRUE(seen.insert({body, field.name}).second) << field.name << " of " << body;
    }
  }
  EXPECT_GT(seen.size(), 300u);
}

TEST(ApiFields, WhatMeansSomethingElseIsNotShared) {
  const auto shares = [](ApiBody from, ApiBody to, const std::string& name) {
    for (const char* shared : shared_fields(from, to)) {
      if (name == shared) return true;
    }
    return false;
  };
  EXPECT_TRUE(shares(kMessagesBody, kChatBody, "min_p"));
  EXPECT_FALSE(shares(kMessagesBody, kChatBody, "tools"));
  EXPECT_TRUE(shares(kResponsesBody, kChatBody, "stop"));
  EXPECT_FALSE(shares(kMessagesBody, kChatBody, "stop"));
  EXPECT_TRUE(shares(kLlamaBody, kCompletionBody, "logit_bias"));
  EXPECT_FALSE(shares(kLlamaBody, kCompletionBody, "n_predict"));
}

}  // namespace
}  // namespace foretoken
