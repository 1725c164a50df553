#pragma once
#include <gtest/gtest.h>

#include <utility>

#include "serve/openai/openai_request.h"

namespace foretoken::test {

using json = nlohmann::ordered_json;

// The chat of one user message with the fields of `more`.
inline Result<OpenAiRequest> chat_of(const json& more, bool strict = false) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 1000;
  defaults.strict_fields = strict;
  json body = {{"messages", {{{"role", "user"}, {"content", "x"}}}}};
  body.update(more);
  return parse_openai_request(OpenAiKind::kChat, body, defaults);
}

// Of a body that must be accepted.
inline OpenAiRequest read_chat(const json& more) {
  Result<OpenAiRequest> request = chat_of(more);
  EXPECT_TRUE(request.ok()) << more.dump() << ": " << request.status().message();
  if (request.ok()) return std::move(request).value();
  OpenAiRequest none;
  none.requests.emplace_back();
  return none;
}

}  // namespace foretoken::test
