#include "chat/calls/forced_calls.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

TEST(ForcedCalls, Required) {
  ChatParserOptions options = options_of("");
  options.tool_choice = "required";
  check_cases(
      options,
      {{"two calls",
        R"( [ {"name": "now", "parameters": {}}, {"name": "f", "parameters": {"a": 1}}])",
        {"", "", {{"now", "{}"}, {"f", R"({"a": 1})"}}}},
       {"cut off", R"([{"name": "f", "parameters": {"a": "x)", {"", "", {{"f", R"({"a": "x"})"}}}},
       {"cut off before the arguments", R"([{"name": "f", "par)", {}},
       {"something else", "Hello [", {"", "Hello [", {}}}});
}

TEST(ForcedCalls, Named) {
  ChatParserOptions options = options_of("hermes", "deepseek_r1");
  options.tool_choice = "get_weather";
  check_cases(
      options,
      {{"behind reasoning",
        "hm</think>\n{\"city\": \"Paris\"}\n",
        {"hm", "", {{"get_weather", R"({"city": "Paris"})"}}}},
       {"cut off", "</think>{\"city\": \"Par", {"", "", {{"get_weather", R"({"city": "Par"})"}}}},
       {"something else", "</think>Hello {}", {"", "Hello {}", {}}}});
}

}  // namespace
}  // namespace foretoken
