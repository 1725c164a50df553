#include "chat/calls/gemma_calls.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

TEST(GemmaCalls, Gemma4) {
  check_cases(options_of("gemma4"),
              {
                  {"kinds of values",
                   "Hm.<|tool_call>call:get_weather{city:<|\"|>Paris "
                   "\"x\"<|\"|>,days:3,exact:true,where:{a:["
                   "<|\"|>b<|\"|>,-2.5,{}],c:[]}}<tool_call|>",
                   {"",
                    "Hm.",
                    {{"get_weather",
                      "{\"city\": \"Paris \\\"x\\\"\", \"days\": 3, \"exact\": true, "
                      "\"where\": {\"a\": [\"b\", -2.5, {}], \"c\": []}}"}}}},
                  {"two calls",
                   "<|tool_call>call:now{}<tool_call|><|tool_call>call:now{}<tool_call|>",
                   {"", "", {{"now", "{}"}, {"now", "{}"}}}},
                  {"a word without quotes",
                   "<|tool_call>call:f{a:some text}<tool_call|>",
                   {"", "", {{"f", R"({"a": "some text"})"}}}},
                  {"cut off in a text",
                   "<|tool_call>call:f{a:[<|\"|>x",
                   {"", "", {{"f", R"({"a": ["x"]})"}}}},
                  {"a bracket is missing",
                   "<|tool_call>call:f{a:[1<tool_call|> So.",
                   {"", "", {{"f", R"({"a": []})"}}}},
                  {"no call",
                   "<|tool_call>hello{}<tool_call|>",
                   {"", "<|tool_call>hello{}<tool_call|>", {}}},
              });
}

TEST(GemmaCalls, FunctionGemma) {
  check_cases(options_of("functiongemma"),
              {{"one call",
                "<start_function_call>call:f{a:<escape>x<escape>}<end_function_call>",
                {"", "", {{"f", R"({"a": "x"})"}}}}});
}

}  // namespace
}  // namespace foretoken
