#include "chat/scan/call_openings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken {
namespace {

bool has(const std::vector<std::string>& openings, const std::string& one) {
  return std::find(openings.begin(), openings.end(), one) != openings.end();
}

TEST(CallOpenings, MoreThanTheMarker) {
  const auto coder = call_openings("qwen3_coder", {"f"});
  EXPECT_TRUE(has(coder, "<tool_call>\n<function="));
  EXPECT_FALSE(has(coder, "<tool_call>"));
  const auto glm = call_openings("glm45", {"f", "g"});
  EXPECT_TRUE(has(glm, "<tool_call>g\n") && has(glm, "<tool_call>f<arg_key>"));
  EXPECT_TRUE(call_openings("glm45", {}).empty());
  const auto objects = call_openings("hermes", {"f"});
  EXPECT_TRUE(has(objects, "<tool_call>\n{\"name\": \"f\"") &&
              has(objects, "<tool_call>{\"name\":\"f\""));
  EXPECT_TRUE(call_openings("llama3_json", {"f"}).empty());
}

TEST(CallOpenings, MarkersOfCalls) {
  EXPECT_EQ(call_markers("hermes"), std::vector<std::string>{"<tool_call>"});
  EXPECT_TRUE(call_markers("llama3_json").empty());
  EXPECT_TRUE(call_markers("openai").empty());
}

}  // namespace
}  // namespace foretoken
