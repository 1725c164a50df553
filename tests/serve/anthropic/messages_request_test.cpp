#include "serve/anthropic/messages_request.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Result<OpenAiRequest> parse(const char* text, bool strict = false) {
  OpenAiDefaults defaults;
  defaults.max_model_len = 100;
  defaults.tool_parser = "hermes";
  defaults.strict_fields = strict;
  return parse_messages_request(json::parse(text), defaults);
}

// Of a server that passes nothing over.
void expect_error(const char* text, const std::string& part) {
  const auto parsed = parse(text, true);
  ASSERT_FALSE(parsed.ok()) << text;
  EXPECT_NE(parsed.status().message().find(part), std::string::npos) << parsed.status().message();
}

TEST(MessagesRequest, TextsToolsAndResults) {
  const auto parsed = parse(R"({"model": "m", "max_tokens": 7, "system": [{"type": "text",
    "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "stop_sequences": ["END"], "temperature": 0.5, "top_k": 4, "metadata": {"user_id": "u"},
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true},
    "messages": [
      {"role": "user", "content": "Hi"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""},
        {"type": "text", "text": "Yes"},
        {"type": "tool_use", "id": "i", "name": "f", "input": {"a": 1}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content":
        [{"type": "text", "text": "ok"}]}, {"type": "text", "text": "Go on"}]}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const OpenAiRequest& request = parsed.value();
  const SamplingParams& sampling = request.requests.front().sampling;
  EXPECT_EQ(sampling.max_tokens, 7);
  EXPECT_EQ(sampling.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(sampling.top_k, 4);
  EXPECT_EQ(request.parser.tool_choice, "f");
  EXPECT_FALSE(request.parser.parallel_tool_calls);
  const json messages = json::parse(request.messages_json);
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0]["role"], "system");
  const json& arguments = messages[2]["tool_calls"][0]["function"]["arguments"];
  EXPECT_EQ(json::parse(arguments.get<std::string>())["a"], 1);
  EXPECT_EQ(messages[2]["reasoning_content"], "t");
  EXPECT_EQ(messages[3]["tool_call_id"], "i");
  EXPECT_EQ(messages[3]["content"], "ok");
  EXPECT_EQ(messages[4]["content"], "Go on");
}

TEST(MessagesRequest, ThinkingAndChoices) {
  const auto parsed = parse(R"({"max_tokens": 1, "messages": [{"role": "user", "content": "x"}],
    "thinking": {"type": "disabled"}, "tools": [{"name": "f", "input_schema": {}}],
    "tool_choice": {"type": "any"}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(json::parse(parsed.value().arguments_json)["enable_thinking"], false);
  EXPECT_EQ(parsed.value().parser.tool_choice, "required");
}

TEST(MessagesRequest, CountingNeedsNoLimit) {
  EXPECT_TRUE(parse(R"({"messages": [{"role": "user", "content": "x"}]})").ok());
}

TEST(MessagesRequest, ToolsThatRunElsewhereAreLeftOut) {
  const auto parsed = parse(R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}],
    "tool_choice": {"type": "tool", "name": "web_search"}, "tools": [
      {"name": "f", "input_schema": {"type": "object"}},
      {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
      {"type": "bash_20250124", "name": "bash"}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().parser.tools.size(), 1u);
  EXPECT_EQ(parsed.value().parser.tool_choice, "auto");
  EXPECT_EQ(parsed.value().warnings.size(), 3u);
  // A name that no tool ever had stays an error.
  EXPECT_FALSE(parse(R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}],
    "tool_choice": {"type": "tool", "name": "g"}, "tools": [
      {"name": "f", "input_schema": {"type": "object"}}]})")
                   .ok());
}

json named(const std::string& name) { return {{"type", "tool_reference"}, {"name", name}}; }

// Names of the tools that are offered behind changes of a conversation, pairs of a type and a tool.
std::vector<std::string> offered_after(const std::vector<std::pair<std::string, json>>& changes) {
  json body = json::parse(R"({"max_tokens": 1, "tools": [{"name": "f", "input_schema": {}},
    {"name": "g", "input_schema": {}}], "tool_choice": {"type": "tool", "name": "f"},
    "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]})");
  for (const auto& [type, tool] : changes) {
    body["messages"][0]["content"].push_back({{"type", type}, {"tool", tool}});
  }
  const auto parsed = parse(body.dump().c_str());
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  std::vector<std::string> names;
  if (!parsed.ok() || parsed.value().arguments_json.empty()) return names;
  const json arguments = json::parse(parsed.value().arguments_json);
  for (const json& tool : arguments.value("tools", json::array())) {
    names.push_back(tool["function"]["name"]);
  }
  return names;
}

TEST(MessagesRequest, ToolsThatTheConversationChanges) {
  using Names = std::vector<std::string>;
  const json defined = {{"type", "tool_definition"},
                        {"definition", {{"name", "h"}, {"input_schema", json::object()}}}};
  EXPECT_EQ(offered_after({}), (Names{"f", "g"}));
  EXPECT_EQ(offered_after({{"tool_removal", named("f")}}), Names{"g"});
  EXPECT_EQ(offered_after({{"tool_removal", named("f")}, {"tool_removal", named("g")}}), Names());
  EXPECT_EQ(offered_after({{"tool_removal", named("f")}, {"tool_addition", named("f")}}),
            (Names{"f", "g"}));
  EXPECT_EQ(offered_after({{"tool_addition", defined}}), (Names{"f", "g", "h"}));
  EXPECT_EQ(offered_after({{"tool_addition", defined}, {"tool_removal", named("h")}}),
            (Names{"f", "g"}));
}

TEST(MessagesRequest, TheEffortOfATurn) {
  const auto parsed = parse(R"({"max_tokens": 1, "output_config": {"effort": "low"},
    "messages": [{"role": "user", "content": "a"},
      {"role": "system", "content": [], "output_config": {"effort": "high"}}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(json::parse(parsed.value().arguments_json)["reasoning_effort"], "high");
}

TEST(MessagesRequest, OutputConfigAndThinking) {
  const auto parsed = parse(R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}],
    "output_config": {"effort": "high", "format": {"type": "json_schema",
                      "schema": {"type": "object"}}},
    "thinking": {"type": "enabled", "budget_tokens": 1024}, "speed": "fast",
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const OpenAiRequest& request = parsed.value();
  const json arguments = json::parse(request.arguments_json);
  EXPECT_EQ(arguments["reasoning_effort"], "high");
  EXPECT_EQ(arguments["enable_thinking"], true);
  ASSERT_TRUE(request.requests.front().sampling.structured_outputs.has_value());
  EXPECT_EQ(request.requests.front().sampling.structured_outputs->json, R"({"type":"object"})");
  EXPECT_EQ(request.warnings,
            std::vector<std::string>{"'thinking': 'budget_tokens' is not applied here"});
  const auto edited = parse(R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}],
    "output_format": {"type": "json_schema", "schema": {"type": "object"}},
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    "mcp_servers": [{"url": "x"}]})");
  ASSERT_TRUE(edited.ok()) << edited.status().message();
  EXPECT_TRUE(edited.value().requests.front().sampling.structured_outputs.has_value());
  EXPECT_EQ(edited.value().warnings.size(), 2u);
}

TEST(MessagesRequest, ErrorsNameWhatIsWrong) {
  expect_error(
      R"({"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "text"}]}]})",
      "message 1: 'text' is missing; give a string");
  expect_error(R"({"max_tokens": 1, "messages": [{"role": "assistant", "content": [
                   {"type": "tool_use", "id": "i", "name": "f", "input": 3}]}]})",
               "an 'input', an object");
  expect_error(R"({"max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}],
                   "tool_choice": {"type": "auto", "disable_parallel_tool_use": 3}})",
               "'disable_parallel_tool_use' must be true or false");
  for (const char* type : {R"("document")", R"("tex")", R"("")", "5", "null"}) {
    const std::string block = std::string(R"([{"type": )") + type + R"(, "text": "x"}])";
    const std::string question = R"({"max_tokens": 1, "messages": [{"role": "user", "content": )";
    expect_error((question + R"("x"}], "system": )" + block + "}").c_str(),
                 "'system' must be a string or an array of");
    expect_error((question + block + "}]}").c_str(), "message 1");
  }
  expect_error(R"({"max_tokens": 1})", "'messages' is missing");
  expect_error(R"({"max_tokens": 1, "messages": [{"role": "bot", "content": "x"}]})",
               "message 1: 'role'");
  expect_error(R"({"max_tokens": 1, "messages": [{"role": "user", "content": 3}]})",
               "message 1: 'content'");
  expect_error(R"({"max_tokens": 1, "messages": [{"role": "user", "content":
                   [{"type": "image", "source": {}}]}]})",
               "blocks of type 'image' are not supported");
  expect_error(R"({"max_tokens": 1, "messages": [{"role": "user", "content": [3]}]})",
               "each block of 'content' needs");
  expect_error(R"({"max_tokens": 1, "messages": [{"role": "user", "content": "x"}],
                   "tools": [{"type": "web_search_20250305", "name": "web_search"}]})",
               "do not run here");
  expect_error(R"({"max_tokens": 1, "messages": [{"role": "user", "content": "x"}],
                   "stop_sequence": ["a"]})",
               "did you mean 'stop_sequences'?");
  expect_error(R"({"max_tokens": 1, "messages": [{"role": "user", "content": "x"}],
                   "thinking": 3})",
               "'thinking' must be");
}

}  // namespace
}  // namespace foretoken
