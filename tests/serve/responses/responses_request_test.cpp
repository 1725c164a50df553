#include "serve/responses/responses_request.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Result<ResponsesRequest> parse(const char* text, const ResponseStore& store = ResponseStore(1),
                               bool strict = false) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 100;
  defaults.tool_parser = "hermes";
  defaults.strict_fields = strict;
  return parse_responses_request(json::parse(text), defaults, store);
}

// Of a server that passes nothing over.
void expect_error(const char* text, const std::string& part) {
  const auto parsed = parse(text, ResponseStore(1), true);
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

TEST(ResponsesRequest, UnknownIncludesAreTold) {
  const auto parsed = parse(R"({"input": "Hi", "include": ["reasoning.encrypted_content",
    "message.output_text.logprobs", "message.output_text"]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(
      parsed.value().chat.warnings,
      std::vector<std::string>{"'include': 'message.output_text' is unknown and was passed over"});
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

TEST(ResponsesRequest, ItemsOfOneIdAreToldApart) {
  ResponseStore store(4);
  store.put("resp_1", {{{"status", "completed"}},
                       json::array(),
                       false,
                       json::parse(R"([{"id": "msg_a", "role": "user"}])")});
  const auto parsed = parse(R"({"previous_response_id": "resp_1", "input": [
    {"id": "msg_a", "role": "user", "content": "a"}, {"id": "msg_b", "role": "user", "content": "b"},
    {"id": "msg_b", "role": "user", "content": "c"}]})",
                            store);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const json& items = parsed.value().items;
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0]["id"], "msg_a");
  EXPECT_NE(items[1]["id"], "msg_a");
  EXPECT_EQ(items[2]["id"], "msg_b");
  EXPECT_NE(items[3]["id"], "msg_b");
  EXPECT_EQ(items[3]["content"][0]["text"], "c");
}

TEST(ResponsesRequest, ToolsThatRunElsewhereAreLeftOut) {
  const auto parsed = parse(R"({"input": "x", "tool_choice": {"type": "web_search"}, "tools": [
    {"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "web_search"},
    {"type": "local_shell"}, {"type": "tool_search"}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const OpenAiRequest& chat = parsed.value().chat;
  EXPECT_EQ(chat.parser.tools.size(), 1u);
  EXPECT_EQ(chat.parser.tool_choice, "auto");
  ASSERT_EQ(chat.warnings.size(), 4u);
  EXPECT_EQ(chat.warnings[0],
            "'tools': tools of type 'web_search' do not run here and were left out; give "
            "functions");
  EXPECT_EQ(chat.warnings[3],
            "'tool_choice' names a tool that does not run here and was passed over");
  // All of them are left out.
  const auto none = parse(R"({"input": "x", "tool_choice": "required",
                              "tools": [{"type": "mcp", "server_label": "s"}]})");
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none.value().chat.parser.tool_choice, "none");
}

TEST(ResponsesRequest, ItemsGiveToolsAndSettings) {
  const auto parsed = parse(R"({"reasoning": {"effort": "low"}, "input": [
    {"role": "user", "content": "Hi"},
    {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]},
    {"type": "configuration_update", "reasoning": {"effort": "high"}, "text": {"format":
      {"type": "json_schema", "name": "n", "schema": {"type": "integer"}}}}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const OpenAiRequest& chat = parsed.value().chat;
  const json arguments = json::parse(chat.arguments_json);
  EXPECT_EQ(arguments["tools"][0]["function"]["name"], "f");
  EXPECT_EQ(arguments["reasoning_effort"], "high");
  EXPECT_EQ(chat.requests.front().sampling.structured_outputs->json, R"({"type":"integer"})");
  EXPECT_EQ(json::parse(chat.messages_json).size(), 1u);
  EXPECT_TRUE(chat.warnings.empty());
}

TEST(ResponsesRequest, SettingsThatAnItemDoesNotGiveStay) {
  const auto parsed = parse(R"({"reasoning": {"effort": "low"}, "text": {"format":
      {"type": "json_schema", "name": "n", "schema": {"type": "integer"}}},
    "input": [{"role": "user", "content": "Hi"}, {"type": "configuration_update",
      "reasoning": {"summary": "auto"}, "text": {"verbosity": "low"}}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const OpenAiRequest& chat = parsed.value().chat;
  ASSERT_TRUE(chat.requests.front().sampling.structured_outputs.has_value());
  EXPECT_EQ(chat.requests.front().sampling.structured_outputs->json, R"({"type":"integer"})");
  EXPECT_EQ(json::parse(chat.arguments_json)["reasoning_effort"], "low");
}

TEST(ResponsesRequest, WhatReasoningAsksOfTheServiceHasNoEffect) {
  const auto parsed = parse(R"({"input": "Hi", "moderation": {"model": "m"},
      "reasoning": {"effort": "low", "context": "all", "mode": "standard", "depth": 1}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  size_t known = 0, unknown = 0;
  for (const std::string& warning : parsed.value().chat.warnings) {
    known += warning.find("has no effect here") != std::string::npos ? 1 : 0;
    unknown += warning.find("is unknown") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(known, 3u);
  EXPECT_EQ(unknown, 1u);
}

TEST(ResponsesRequest, AResponseGoesOnWithoutAWord) {
  ResponseStore store(4);
  store.put("resp_1", {{{"status", "completed"}},
                       json::parse(R"([{"role": "user", "content": "a"},
                                       {"role": "assistant", "content": "b"}])"),
                       false,
                       json::array()});
  for (const char* body : {R"({"previous_response_id": "resp_1"})",
                           R"({"previous_response_id": "resp_1", "input": []})"}) {
    const auto parsed = parse(body, store);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed.value().messages.size(), 2u);
  }
}

TEST(ResponsesRequest, AllowedToolsAreThoseOffered) {
  const auto parsed = parse(R"({"input": "x", "tools": [
    {"type": "function", "name": "f"}, {"type": "function", "name": "g"}],
    "tool_choice": {"type": "allowed_tools", "mode": "required",
                    "tools": [{"type": "function", "name": "g"}]}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ChatParserOptions& parser = parsed.value().chat.parser;
  ASSERT_EQ(parser.tools.size(), 1u);
  EXPECT_EQ(parser.tools[0]["function"]["name"], "g");
  EXPECT_EQ(parser.tool_choice, "required");
}

TEST(ResponsesRequest, TruncationLeavesTheOldestOut) {
  EXPECT_TRUE(parse(R"({"input": "x", "truncation": "auto"})").value().chat.drops_oldest);
  for (const char* body : {R"({"input": "x"})", R"({"input": "x", "truncation": "disabled"})"}) {
    EXPECT_FALSE(parse(body).value().chat.drops_oldest);
  }
}

TEST(ResponsesRequest, ErrorsNameWhatIsWrong) {
  expect_error("{}", "'input' is missing");
  expect_error(R"({"input": "x", "tools": [{"type": "web_search"}]})", "do not run here");
  expect_error(R"({"input": "x", "tools": [3]})", "'tools': each must be");
  expect_error(R"({"input": "x", "text": {"formats": 1}})", "did you mean 'format'?");
  expect_error(R"({"input": "x", "truncation": "middle"})", "'truncation' must be");
  expect_error(R"({"input": "x", "background": true, "store": false})", "'background' needs");
  for (const char* length : {"0", "-5", "[]"}) {
    const std::string body = R"({"input": "x", "max_output_tokens": )" + std::string(length) + "}";
    expect_error(body.c_str(), "'max_output_tokens' must be");
  }
  expect_error(R"({"input": "x", "conversation": "c"})", "there is no such conversation");
  expect_error(R"({"input": "x", "conversation": {}})", "'conversation' must be");
}

}  // namespace
}  // namespace foretoken
