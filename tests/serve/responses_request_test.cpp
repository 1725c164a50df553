#include "serve/responses_request.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Result<ResponsesRequest> parse(const char* text, const ResponseStore& store = ResponseStore(1)) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 100;
  defaults.tool_parser = "hermes";
  return parse_responses_request(json::parse(text), defaults, store);
}

void expect_error(const char* text, const std::string& part) {
  const auto parsed = parse(text);
  ASSERT_FALSE(parsed.ok()) << text;
  EXPECT_NE(parsed.status().message().find(part), std::string::npos) << parsed.status().message();
}

TEST(ResponsesRequest, FieldsOfTheResponsesApi) {
  const auto parsed = parse(R"({"input": "Hi", "instructions": "Be brief.", "max_output_tokens": 5,
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    "tool_choice": {"type": "function", "name": "f"}, "parallel_tool_calls": false,
    "text": {"format": {"type": "text"}}, "reasoning": {"effort": "low", "summary": "auto"},
    "metadata": {"a": "b"}, "include": ["message.output_text.logprobs"], "top_logprobs": 2})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ResponsesRequest& request = parsed.value();
  EXPECT_EQ(request.chat.requests.front().sampling.max_tokens, 5);
  EXPECT_EQ(request.chat.requests.front().sampling.logprobs, 2);
  EXPECT_EQ(request.chat.parser.tool_choice, "f");
  EXPECT_EQ(json::parse(request.chat.messages_json).size(), 2u);
  EXPECT_EQ(json::parse(request.chat.arguments_json)["reasoning_effort"], "low");
  EXPECT_EQ(request.messages.size(), 1u);  // instructions are of this response alone
  EXPECT_EQ(request.repeated["metadata"]["a"], "b");
  EXPECT_EQ(request.repeated["tools"][0]["name"], "f");
}

TEST(ResponsesRequest, ASchemaIsForced) {
  const auto parsed = parse(R"({"input": "Hi", "text": {"format": {"type": "json_schema",
    "name": "n", "schema": {"type": "integer"}, "strict": true}}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().chat.requests.front().sampling.structured_outputs->json,
            R"({"type":"integer"})");
}

TEST(ResponsesRequest, AConversationGoesOn) {
  ResponseStore store(4);
  store.put("resp_1", {{{"status", "completed"}}, json::parse(R"([{"role": "user", "content": "a"},
                             {"role": "assistant", "content": "b"}])")});
  store.put("resp_2", {{{"status", "queued"}}, json::array(), true});
  store.put("resp_3", {{{"status", "failed"}}, json::array()});
  const auto parsed = parse(R"({"input": "c", "previous_response_id": "resp_1"})", store);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().messages.size(), 3u);
  EXPECT_EQ(parse(R"({"input": "c", "previous_response_id": "x"})", store).status().code(),
            StatusCode::kNotFound);
  EXPECT_NE(parse(R"({"input": "c", "previous_response_id": "resp_3"})", store)
                .status()
                .message()
                .find("has the status \"failed\""),
            std::string::npos);
  EXPECT_NE(parse(R"({"input": "c", "previous_response_id": "resp_2"})", store)
                .status()
                .message()
                .find("has not ended"),
            std::string::npos);
}

TEST(ResponsesRequest, ErrorsNameWhatIsWrong) {
  expect_error("{}", "'input' is missing");
  expect_error(R"({"input": "x", "tools": [{"type": "web_search"}]})", "do not run here");
  expect_error(R"({"input": "x", "tools": [3]})", "'tools': each must be");
  expect_error(R"({"input": "x", "text": {"formats": 1}})", "did you mean 'format'?");
  expect_error(R"({"input": "x", "truncation": "auto"})", "'truncation'");
  expect_error(R"({"input": "x", "background": true, "stream": true})", "'background' needs");
  expect_error(R"({"input": "x", "conversation": "c"})", "'conversation' is not supported");
  expect_error(R"({"input": "x", "max_tokens": 4})", "'max_tokens' is unknown");
}

}  // namespace
}  // namespace foretoken
