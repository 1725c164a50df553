#include "chat/deepseek_calls.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

TEST(DeepseekCalls, Table) {
  check_cases(
      options_of("deepseek_v3"),
      {
          {"V3",
           "Hm.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
           "```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜>\n"
           "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>"
           "<｜tool▁calls▁end｜>",
           {"", "Hm.", {{"get_weather", R"({"city": "Paris"})"}, {"now", "{}"}}}},
          {"V3.1",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": "
           "\"Paris\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜> Done.",
           {"", " Done.", {{"get_weather", R"({"city": "Paris"})"}}}},
          {"cut off",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁ca",
           {"", "", {{"now", "{}"}}}},
          {"no calls",
           "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>",
           {"", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", {}}},
          {"broken",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a b {}",
           {"", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a b {}", {}}},
          {"other markers", "a <｜User｜> b", {"", "a <｜User｜> b", {}}},
      });
}

}  // namespace
}  // namespace foretoken
