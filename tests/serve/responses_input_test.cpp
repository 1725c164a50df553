#include "serve/responses_input.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string error(const char* input) {
  json messages = json::array();
  return read_responses_input(json::parse(input), &messages).message();
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
                                             &messages);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[1]["content"], "Hi");
  EXPECT_EQ(messages[2]["tool_calls"].size(), 2u);
  EXPECT_EQ(messages[3]["tool_call_id"], "1");
}

TEST(ResponsesInput, ErrorsNameTheItem) {
  EXPECT_NE(error("3").find("'input' must be"), std::string::npos);
  EXPECT_NE(error("[]").find("not empty"), std::string::npos);
  EXPECT_NE(error(R"([{"type": 3, "role": "user", "content": ""}])").find("'type'"),
            std::string::npos);
  EXPECT_NE(error(R"([{"role": "user", "content": [{"type": "input_text"}]}])").find("'text'"),
            std::string::npos);
  EXPECT_NE(error(R"([{"type": "function_call", "call_id": "1", "name": "f", "arguments": {}}])")
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
