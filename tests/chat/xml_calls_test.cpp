#include "chat/xml_calls.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

TEST(XmlCalls, Qwen3Coder) {
  check_cases(
      options_of("qwen3_coder"),
      {
          {"one call",
           "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
           "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
           {"", "", {{"get_weather", R"({"city": "Paris", "days": 3})"}}}},
          {"several lines, quotes and markup within a text",
           "<function=get_weather><parameter=city>\n<b>\"a\"\n\nb\\</b>\n\n</parameter></function>",
           {"", "", {{"get_weather", R"({"city": "<b>\"a\"\n\nb\\</b>\n"})"}}}},
          {"kinds of values",
           "<tool_call><function=get_weather><parameter=exact>True</parameter>"
           "<parameter=where>{'a': [1]}</parameter><parameter=units>null</parameter>"
           "<parameter=more>5</parameter><parameter=days>many</parameter></function></tool_call>",
           {"",
            "",
            {{"get_weather", R"({"exact": true, "where": {"a":[1]}, "units": null, "more": "5", )"
                             R"("days": "many"})"}}}},
          {"no parameters, twice, text around",
           "So.\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n<tool_call>\n"
           "<function=now></function></tool_call> Done.",
           {"", "So.\n Done.", {{"now", "{}"}, {"now", "{}"}}}},
          {"an empty text",
           "<function=get_weather><parameter=city></parameter></function>",
           {"", "", {{"get_weather", R"({"city": ""})"}}}},
          {"an unknown function's values are texts",
           "<function=f><parameter=a>1</parameter></function>",
           {"", "", {{"f", R"({"a": "1"})"}}}},
          {"no call", "<tool_call>hello <function", {"", "<tool_call>hello <function", {}}},
          {"broken within",
           "<function=now>oops</function>",
           {"", "oops</function>", {{"now", "{"}}}},
          {"cut off",
           "<function=get_weather><parameter=city>\nPar",
           {"", "", {{"get_weather", "{\"city\": \"Par"}}}},
      });
}

TEST(XmlCalls, TypedValues) {
  using json = nlohmann::ordered_json;
  EXPECT_EQ(typed_value("5", nullptr), "\"5\"");
  EXPECT_EQ(typed_value("5", json::parse(R"({"type": "string"})")), "\"5\"");
  EXPECT_EQ(typed_value("5", json::parse(R"({"type": "number"})")), "5");
  EXPECT_EQ(typed_value("5", json::parse(R"({"anyOf": [{"type": "string"}, {"type": "null"}]})")),
            "\"5\"");
  EXPECT_EQ(typed_value("None", json::parse(R"({"type": ["integer", "null"]})")), "null");
  EXPECT_EQ(typed_value("2", json::parse(R"({"enum": [1, 2]})")), "2");
  EXPECT_EQ(typed_value("a\"b", json::parse(R"({"enum": ["a\"b"]})")), "\"a\\\"b\"");
  EXPECT_EQ(typed_value("[1, \"x\"]", json::parse(R"({"type": "array"})")), "[1,\"x\"]");
}

}  // namespace
}  // namespace foretoken
