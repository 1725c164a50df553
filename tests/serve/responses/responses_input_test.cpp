#include "serve/responses/responses_input.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string error(const char* input) {
  json messages = json::array();
  return read_responses_input(json::parse(input), {}, &messages).message();
}

TEST(ResponsesInput, ItemsBecomeMessages) {
  json messages = json::array();
  const Status status = read_responses_input(json::parse(R"([
    {"role": "developer", "content": "Be brief."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
    {"type": "function_call", "call_id": "2", "name": "g", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "1", "output": "ok"}])"),
                                             {}, &messages);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[1]["content"], "Hi");
  EXPECT_EQ(messages[2]["tool_calls"].size(), 2u);
  EXPECT_EQ(messages[3]["tool_call_id"], "1");
}

TEST(ResponsesInput, PartsWithoutATypeOrAListAreTexts) {
  json messages = json::array();
  const Status status = read_responses_input(json::parse(R"([
    {"role": "user", "content": {"type": "input_text", "text": "a"}},
    {"role": "user", "content": [{"text": "b"}]}])"),
                                             {}, &messages);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(messages[0]["content"], "a");
  EXPECT_EQ(messages[1]["content"], "b");
}

// As those of chats, which the template joins.
TEST(ResponsesInput, SeveralTextsStayParts) {
  json messages = json::array();
  const Status status = read_responses_input(json::parse(R"([
    {"role": "user", "content": [{"type": "input_text", "text": "a"},
                                 {"type": "input_text", "text": "b"}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": "c"},
                                      {"type": "output_text", "text": "d"}]}])"),
                                             {}, &messages);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(messages[0]["content"], json::parse(R"([{"type": "text", "text": "a"},
                                                   {"type": "text", "text": "b"}])"));
  EXPECT_EQ(messages[1]["content"], "cd");
}

TEST(ResponsesInput, CallsWithinANamespaceHaveItsName) {
  json messages = json::array();
  const Status status = read_responses_input(json::parse(R"([{"type": "function_call",
    "call_id": "1", "namespace": "mcp__files", "name": "read", "arguments": "{}"}])"),
                                             {}, &messages);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(messages[0]["tool_calls"][0]["function"]["name"], "mcp__files__read");
}

// What Codex has in the history of a later turn.
TEST(ResponsesInput, ItemsOfOtherTools) {
  json messages = json::array();
  std::vector<std::string> warnings;
  const Status status = read_responses_input(json::parse(R"([
    {"type": "message", "role": "user", "content": "Go"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}],
     "content": [{"type": "reasoning_text", "text": "I think."}], "encrypted_content": "gAAA"},
    {"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": "*** Begin"},
    {"type": "local_shell_call", "call_id": "2", "status": "completed",
     "action": {"type": "exec", "command": ["ls"]}},
    {"type": "custom_tool_call_output", "call_id": "1", "output": "done"},
    {"type": "local_shell_call_output", "id": "2", "output":
     [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
    {"type": "mcp_call", "id": "m", "name": "q", "arguments": "{\"x\":1}", "output": "found"},
    {"type": "web_search_call", "status": "completed", "action": {"type": "search"}},
    {"type": "compaction", "encrypted_content": "x"}, {"type": "web_search_call"},
    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}])"),
                                             {&warnings}, &messages);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(messages.size(), 7u) << messages.dump(1);
  EXPECT_EQ(messages[1]["reasoning_content"], "I think.");
  const json& calls = messages[1]["tool_calls"];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["function"],
            json({{"name", "apply_patch"}, {"arguments", R"({"input":"*** Begin"})"}}));
  EXPECT_EQ(calls[1]["function"]["name"], "local_shell");
  EXPECT_EQ(messages[2], json({{"role", "tool"}, {"tool_call_id", "1"}, {"content", "done"}}));
  EXPECT_EQ(messages[3]["content"], "a\nb");
  EXPECT_EQ(messages[4]["tool_calls"][0]["function"]["arguments"], "{\"x\":1}");
  EXPECT_EQ(messages[5]["content"], "found");
  EXPECT_EQ(messages[6]["content"], "No.");
  EXPECT_FALSE(messages[6].contains("reasoning_content"));
  EXPECT_EQ(warnings,
            (std::vector<std::string>{
                "'input' items of type 'web_search_call' cannot be read here and were left out",
                "'input' items of type 'compaction' cannot be read here and were left out"}));
}

TEST(ResponsesInput, ErrorsNameTheItem) {
  EXPECT_NE(error("3").find("'input' must be"), std::string::npos);
  EXPECT_NE(error("[]").find("not empty"), std::string::npos);
  EXPECT_NE(error(R"([{"type": 3, "role": "user", "content": ""}])").find("'type'"),
            std::string::npos);
  EXPECT_NE(error(R"([{"role": "user", "content": [{"type": "input_text"}]}])").find("'text'"),
            std::string::npos);
  EXPECT_NE(error(R"([{"type": "function_call", "call_id": "1", "name": "f", "arguments": 3}])")
                .find("'arguments', a string"),
            std::string::npos);
  EXPECT_NE(error("[3]").find("'input' item 1 must be an object"), std::string::npos);
  EXPECT_NE(error(R"([{"role": "x", "content": ""}])").find("item 1: 'role'"), std::string::npos);
  EXPECT_NE(error(R"([{"type": "item_reference", "id": "a"}])").find("'item_reference'"),
            std::string::npos);
  EXPECT_NE(error(R"([{"role": "user", "content": [{"type": "input_image"}]}])")
                .find("parts of type 'input_image'"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
