#include "chat/calls/python_calls.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

TEST(PythonCalls, Pythonic) {
  check_cases(
      options_of("pythonic"),
      {
          {"one call",
           "[get_weather(city='Paris')]",
           {"", "", {{"get_weather", R"({"city": "Paris"})"}}}},
          {"several calls and kinds of values",
           "[get_weather(city=\"Pa'ris\", days=3, exact=True, where={'a': [1, -2.5, None]}), "
           "now()]",
           {"",
            "",
            {{"get_weather",
              R"({"city": "Pa'ris", "days": 3, "exact": true, "where": {"a": [1, -2.5, null]}})"},
             {"now", "{}"}}}},
          {"escapes",
           R"([get_weather(city='it\'s "x"\n\u00e9\x41\d')])",
           {"", "", {{"get_weather", R"({"city": "it's \"x\"\néA\\d"})"}}}},
          {"spaces and commas to spare",
           " [ get_weather( city = 'x' , days=1, ) , now() , ] ",
           {"", "", {{"get_weather", R"({"city": "x", "days": 1})"}, {"now", "{}"}}}},
          {"text behind the list", "[now()] Done.", {"", " Done.", {{"now", "{}"}}}},
          {"brackets in text", "See [now()]", {"", "See [now()]", {}}},
          {"a link", "[docs](https://x.y)", {"", "[docs](https://x.y)", {}}},
          {"an unknown function", "[f(a=1)]", {"", "[f(a=1)]", {}}},
          {"a list", "[1, 2]", {"", "[1, 2]", {}}},
          {"an empty list", "[]", {"", "[]", {}}},
          {"positional arguments", "[now('a')]", {"", "[now('a')]", {}}},
          {"no literal", "[now(a=b)]", {"", "[now(a=b)]", {}}},
          {"broken in the second argument",
           "[get_weather(city='x', days=oops)]",
           {"", ", days=oops)]", {{"get_weather", R"({"city": "x"})"}}}},
          {"cut off", "[get_weather(city='Par", {"", "", {{"get_weather", R"({"city": "Par"})"}}}},
          {"cut off before a call", "[get_wea", {"", "[get_wea", {}}},
      });
}

TEST(PythonCalls, Llama4) {
  check_cases(options_of("llama4_pythonic"),
              {
                  {"marked",
                   "Hm.<|python_start|>[f(a=1)]<|python_end|>",
                   {"", "Hm.", {{"f", R"({"a": 1})"}}}},
                  {"bare", "[now()]", {"", "", {{"now", "{}"}}}},
                  {"broken",
                   "<|python_start|>print(1)<|python_end|>",
                   {"", "<|python_start|>print(1)<|python_end|>", {}}},
              });
}

TEST(PythonCalls, Lines) {
  check_cases(options_of("olmo3"),
              {{"two lines",
                "Hm.<function_calls>\nget_weather(city='Paris')\nnow()\n</function_calls>",
                {"", "Hm.", {{"get_weather", R"({"city": "Paris"})"}, {"now", "{}"}}}},
               {"broken",
                "<function_calls>\nnow()\nnow(oops)\n</function_calls> So.",
                {"", " So.", {{"now", "{}"}}}}});
  check_cases(options_of("lfm2"), {{"a marked list",
                                    "<|tool_call_start|>[now()]<|tool_call_end|>Done.",
                                    {"", "Done.", {{"now", "{}"}}}},
                                   {"without the markers", "[now()]", {"", "", {{"now", "{}"}}}},
                                   {"of nothing known", "[then()]", {"", "[then()]", {}}}});
}

}  // namespace
}  // namespace foretoken
