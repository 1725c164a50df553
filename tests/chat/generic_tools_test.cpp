#include "chat/generic_tools.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

const char* kTools = R"([{"type": "function", "function": {"name": "now", "parameters": {}}}])";

TEST(GenericTools, DescribesToolsCallsAndResults) {
  const json messages = json::parse(R"([{"role": "system", "content": "Be brief."},
      {"role": "user", "content": "x"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "now", "arguments": "{\"a\": 1}"}},
        {"id": "2", "type": "function", "function": {"name": "now", "arguments": ""}}]},
      {"role": "tool", "tool_call_id": "1", "content": "noon"},
      {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "one"}]}])");
  EXPECT_TRUE(holds_calls(messages));
  const json plain = with_generic_tools(messages, json::parse(kTools));
  ASSERT_EQ(plain.size(), 4u);
  const std::string system = plain[0]["content"];
  EXPECT_TRUE(system.starts_with("Be brief.\n\n")) << system;
  EXPECT_NE(system.find(R"({"name":"now","parameters":{}})"), std::string::npos) << system;
  EXPECT_EQ(plain[2]["content"],
            "<tool_call>{\"name\":\"now\",\"arguments\":{\"a\":1}}</tool_call>\n"
            "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>");
  EXPECT_FALSE(plain[2].contains("tool_calls"));
  EXPECT_EQ(plain[3]["role"], "user");
  EXPECT_EQ(plain[3]["content"],
            "<tool_response>noon</tool_response>\n<tool_response>one</tool_response>");
  EXPECT_FALSE(holds_calls(plain));
}

TEST(GenericTools, ArgumentsNestedTooDeeplyStayAText) {
  const std::string deep = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  json messages = json::parse(R"([{"role": "assistant", "tool_calls": [{"id": "1", "function":
      {"name": "now"}}]}])");
  messages[0]["tool_calls"][0]["function"]["arguments"] = deep;
  const json plain = with_generic_tools(messages, json::parse(kTools));
  EXPECT_NE(plain.back()["content"].get<std::string>().find("\"{\\\"a\\\":[["), std::string::npos);
}

TEST(GenericTools, WithoutASystemMessageThereIsOneMore) {
  const json messages = json::parse(R"([{"role": "user", "content": "x"}])");
  const json plain = with_generic_tools(messages, json::parse(kTools));
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0]["role"], "system");
  EXPECT_EQ(with_generic_tools(messages, nullptr), messages);
}

}  // namespace
}  // namespace foretoken
