#include "serve/openapi/openapi_fields.h"

#include <gtest/gtest.h>

#include "serve/anthropic/messages_request.h"
#include "serve/llamacpp/llama_request.h"
#include "serve/responses/responses_request.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status parse(ApiBody body, const json& value) {
  OpenAiDefaults defaults;
  defaults.strict_fields = true;
  defaults.max_model_len = 100;
  const ResponseStore store(1);
  switch (body) {
    case kChatBody:
      return parse_openai_request(OpenAiKind::kChat, value, defaults).status();
    case kCompletionBody:
      return parse_openai_request(OpenAiKind::kCompletion, value, defaults).status();
    case kEmbeddingBody:
      return parse_openai_request(OpenAiKind::kEmbedding, value, defaults).status();
    case kMessagesBody:
    case kCountBody:
      return parse_messages_request(value, defaults).status();
    case kLlamaBody:
      return parse_llama_request(value, defaults).status();
    default:
      return parse_responses_request(value, defaults, store).status();
  }
}

json base(ApiBody body) {
  const json messages = json::parse(R"([{"role": "user", "content": "x"}])");
  if (body == kCompletionBody || body == kLlamaBody) return {{"prompt", "x"}};
  if (body == kEmbeddingBody || body == kResponsesBody) return {{"input", "x"}};
  if (body == kMessagesBody) return {{"messages", messages}, {"max_tokens", 1}};
  return {{"messages", messages}};
}

class OpenApiFields : public testing::TestWithParam<ApiBody> {};

// A field that no parser knows would be an error that names it, though it is null.
TEST_P(OpenApiFields, EveryFieldIsKnownToItsParser) {
  const json schema = openapi_body(GetParam(), {});
  EXPECT_GT(schema["properties"].size(), 15u);
  for (const auto& [name, property] : schema["properties"].items()) {
    json body = base(GetParam());
    // Taken out of the body before it is parsed (message_thread.h).
    if (name == "thread") continue;
    body.emplace(name, nullptr);
    const Status status = parse(GetParam(), body);
    EXPECT_TRUE(status.ok()) << name << ": " << status.message();
  }
}

TEST_P(OpenApiFields, OtherFieldsAreRefusedByStrictServers) {
  json body = base(GetParam());
  body["no_such_field"] = 1;
  EXPECT_NE(parse(GetParam(), body).message().find("'no_such_field' is unknown"),
            std::string::npos);
  EXPECT_EQ(openapi_body(GetParam(), {.strict_fields = true})["additionalProperties"], false);
  EXPECT_EQ(openapi_body(GetParam(), {})["additionalProperties"], true);
}

INSTANTIATE_TEST_SUITE_P(Bodies, OpenApiFields,
                         testing::Values(kChatBody, kCompletionBody, kEmbeddingBody, kMessagesBody,
                                         kCountBody, kResponsesBody, kLlamaBody));

}  // namespace
}  // namespace foretoken
