#include "chat/calls/xml_calls.h"

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
          {"broken within", "<function=now>oops</function>", {"", "", {{"now", "{}"}}}},
          {"cut off",
           "<function=get_weather><parameter=city>\nPar",
           {"", "", {{"get_weather", "{\"city\": \"Par\"}"}}}},
          {"the end of a value is missing",
           "<tool_call>\n<function=f>\n<parameter=a>\nls\n</function>\n</tool_call>",
           {"", "", {{"f", R"({"a": "ls"})"}}}},
          {"the ends of value and call are missing",
           "<tool_call>\n<function=f>\n<parameter=a>\nls\n</tool_call>\n<tool_call>\n<function=f>\n"
           "<parameter=a>\nid\n</tool_call>",
           {"", "", {{"f", R"({"a": "ls"})"}, {"f", R"({"a": "id"})"}}}},
          {"the end of a value is missing before the next one",
           "<function=f>\n<parameter=a>\n1\n<parameter=b>\n2\n</parameter>\n</function>",
           {"", "", {{"f", R"({"a": "1", "b": "2"})"}}}},
          {"the ends of the call are missing",
           "<tool_call>\n<function=now>\n<tool_call>\n<function=now>\n</function>",
           {"", "", {{"now", "{}"}, {"now", "{}"}}}},
          {"ends within a value that ends itself",
           "<tool_call><function=f><parameter=a></function> and </tool_call> "
           "x</parameter></function>"
           "</tool_call>",
           {"", "", {{"f", R"({"a": "</function> and </tool_call> x"})"}}}},
          {"a wrong element",
           "<tool_call><function=f><paramter=a>x</parameter></function></tool_call> So.",
           {"", " So.", {{"f", "{}"}}}},
          {"half a number is none",
           "<function=get_weather><parameter=city>x</parameter><parameter=exact>tr",
           {"", "", {{"get_weather", R"({"city": "x"})"}}}},
      });
}

TEST(XmlCalls, Glm) {
  check_cases(
      options_of("glm45"),
      {
          {"one call, GLM-4.5",
           "So.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
           "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
           {"", "So.\n", {{"get_weather", R"({"city": "Paris", "days": 3})"}}}},
          {"two calls, GLM-4.7, undeclared values",
           "<tool_call>now</tool_call><tool_call>f<arg_key>a</arg_key><arg_value>[1, \"x\"]"
           "</arg_value><arg_key>b</arg_key><arg_value>some text</arg_value></tool_call>",
           {"", "", {{"now", "{}"}, {"f", R"({"a": [1,"x"], "b": "some text"})"}}}},
          {"the end of a value is missing",
           "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>ls</tool_call>",
           {"", "", {{"f", R"({"a": "ls"})"}}}},
          {"cut off", "<tool_call>get_wea", {"", "get_wea", {}}},
      });
}

TEST(XmlCalls, K2Horizon) {
  check_cases(
      options_of("k2_horizon"),
      {
          {"with and without parameters",
           "Hm.<ifm|tool_calls>\n<ifm|tool_call>get_weather\n<ifm|arg_key>city</ifm|arg_key>\n"
           "<ifm|arg_value>Paris</ifm|arg_value>\n<ifm|arg_key>days</ifm|arg_key>"
           "<ifm|arg_value>3</ifm|arg_value></ifm|tool_call><ifm|tool_call>now</ifm|tool_call>"
           "</ifm|tool_calls>",
           {"", "Hm.", {{"get_weather", R"({"city": "Paris", "days": 3})"}, {"now", "{}"}}}},
          {"cut off",
           "<ifm|tool_calls><ifm|tool_call>f<ifm|arg_key>a</ifm|arg_key><ifm|arg_value>x",
           {"", "", {{"f", R"({"a": "x"})"}}}},
      });
}

// "tool_call_format" of the template's arguments.
TEST(XmlCalls, K2HorizonTyped) {
  const auto parameter = [](const std::string& key, const std::string& type,
                            const std::string& value) {
    return "<ifm|arg_key>" + key + "</ifm|arg_key>\n<ifm|arg_type>" + type +
           "</ifm|arg_type>\n<ifm|arg_value>" + value + "</ifm|arg_value>\n";
  };
  const auto call = [](const std::string& name, const std::string& parameters) {
    return "<ifm|tool_calls>\n<ifm|tool_call>" + name + "\n" + parameters +
           "</ifm|tool_call>\n</ifm|tool_calls>";
  };
  check_cases(
      options_of("k2_horizon"),
      {
          {"types of what nobody declares",
           call("f", parameter("a", "string", "007") + parameter("b", "integer", "2") +
                         parameter("c", "boolean", "true") + parameter("d", "array", "[1, \"x\"]") +
                         parameter("e", "any", "text")),
           {"", "", {{"f", R"({"a": "007", "b": 2, "c": true, "d": [1,"x"], "e": "text"})"}}}},
          {"what is declared goes before it",
           call("get_weather",
                parameter("city", "integer", "75") + parameter("days", "string", "3")),
           {"", "", {{"get_weather", R"({"city": "75", "days": 3})"}}}},
          {"cut off in a type",
           "<ifm|tool_calls><ifm|tool_call>f<ifm|arg_key>a</ifm|arg_key><ifm|arg_type>str",
           {"", "", {{"f", "{}"}}}},
      });
}

TEST(XmlCalls, K2HorizonObjects) {
  check_cases(options_of("k2_horizon"),
              {
                  {"two calls",
                   "Hm.<ifm|tool_calls>\n<ifm|tool_call>{\"name\": \"get_weather\", \"arguments\": "
                   "{\"city\": \"Paris\"}}</ifm|tool_call>\n<ifm|tool_call>\n{\"name\": \"now\", "
                   "\"arguments\": {}}\n</ifm|tool_call>\n</ifm|tool_calls>",
                   {"", "Hm.", {{"get_weather", R"({"city": "Paris"})"}, {"now", "{}"}}}},
                  {"the end of a call is missing",
                   "<ifm|tool_calls><ifm|tool_call>{\"name\": \"now\", \"arguments\": {}}"
                   "</ifm|tool_calls>",
                   {"", "", {{"now", "{}"}}}},
                  {"cut off",
                   "<ifm|tool_calls><ifm|tool_call>{\"name\": \"now\", \"arguments\": {\"a\": [\"x",
                   {"", "", {{"now", R"({"a": ["x"]})"}}}},
              });
}

TEST(XmlCalls, Hunyuan4) {
  ChatParserOptions options = options_of("hy_v4", "hy_v4");
  check_cases(
      options,
      {
          {"with the suffix of a checkpoint",
           "<think:6124c78e>a</think:6124c78e>Hm.<tool_calls:6124c78e>\n<tool_call:6124c78e>"
           "get_weather<arg_key:6124c78e>city</arg_key:6124c78e><arg_value:6124c78e>Paris"
           "</arg_value:6124c78e></tool_call:6124c78e>\n<tool_call:6124c78e>now"
           "</tool_call:6124c78e>\n</tool_calls:6124c78e>",
           {"a", "Hm.", {{"get_weather", R"({"city": "Paris"})"}, {"now", "{}"}}}},
          {"without",
           "<tool_calls><tool_call>get_weather<arg_key>days</arg_key><arg_value>3</arg_value>"
           "</tool_call></tool_calls>",
           {"", "", {{"get_weather", R"({"days": 3})"}}}},
          {"a call ends the thought",
           "<think:x>a<tool_calls:x><tool_call:x>now</tool_call:x></tool_calls:x>",
           {"a", "", {{"now", "{}"}}}},
      });
  EXPECT_TRUE(opens_reasoning("hy_v4", "Hi<think:6124c78e>\n"));
  EXPECT_FALSE(opens_reasoning("hy_v4", "Hi</think:6124c78e>"));
}

TEST(XmlCalls, InvokeElements) {
  check_cases(options_of("minimax_m2"),
              {{"two calls in a section",
                "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris"
                "</parameter>\n<parameter name=\"days\">2</parameter>\n</invoke>\n"
                "<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>",
                {"", "", {{"get_weather", R"({"city": "Paris", "days": 2})"}, {"now", "{}"}}}}});
  check_cases(
      options_of("deepseek_v32"),
      {{"values say what they are",
        "Hm.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter "
        "name=\"a\" "
        "string=\"true\">5</｜DSML｜parameter>\n<｜DSML｜parameter name=\"b\" string=\"false\">[5]"
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        {"", "Hm.\n\n", {{"f", R"({"a": "5", "b": [5]})"}}}},
       {"V4's section",
        "<｜DSML｜tool_calls><｜DSML｜invoke name=\"now\"></｜DSML｜invoke></｜DSML｜tool_calls>",
        {"", "", {{"now", "{}"}}}}});
  check_cases(
      options_of("deepseek_v4"),
      {{"parameters in a wrapper that the tool does not have",
        "<｜DSML｜tool_calls><｜DSML｜invoke name=\"get_weather\"><｜DSML｜parameter "
        "name=\"arguments\" "
        "string=\"false\">{\"city\": \"Paris\", \"days\": 2}</｜DSML｜parameter></｜DSML｜invoke>"
        "<｜DSML｜invoke name=\"get_weather\"><｜DSML｜parameter name=\"input\" string=\"true\">"
        "{\"city\": \"Rome\"}</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>",
        {"",
         "",
         {{"get_weather", R"({"city": "Paris", "days": 2})"},
          {"get_weather", R"({"city": "Rome"})"}}}},
       {"none",
        "<｜DSML｜tool_calls><｜DSML｜invoke name=\"get_weather\"><｜DSML｜parameter "
        "name=\"input\" "
        "string=\"true\">say \"hi\"</｜DSML｜parameter></｜DSML｜invoke><｜DSML｜invoke name=\"f\">"
        "<｜DSML｜parameter name=\"input\" string=\"true\">{}</｜DSML｜parameter></｜DSML｜invoke>"
        "</｜DSML｜tool_calls>",
        {"", "", {{"get_weather", R"({"input": "say \"hi\""})"}, {"f", R"({"input": "{}"})"}}}}});
  check_cases(options_of("deepseek_v41"),
              {{"V4.1's spaces",
                "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" "
                "string=\"false\">[5]</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>",
                {"", "", {{"f", R"({"a": [5]})"}}}}});
  check_cases(options_of("dots"),
              {{"a call, and markup that is none",
                "Use <invoke name=\"f\">.<dots_function_call>\n<invoke name=\"f\">\n<parameter "
                "name=\"a\">x</parameter>\n</invoke>\n</dots_function_call>",
                {"", "Use <invoke name=\"f\">.", {{"f", R"({"a": "x"})"}}}}});
  check_cases(options_of("step3"),
              {{"fillers",
                "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke "
                "name=\"f\"><steptml:parameter name=\"a\">x</steptml:parameter></steptml:invoke>"
                "<｜tool_call_end｜><｜tool_calls_end｜>",
                {"", "", {{"f", R"({"a": "x"})"}}}}});
}

}  // namespace
}  // namespace foretoken
