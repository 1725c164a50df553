#include "chat/calls/nested_calls.h"

#include "chat/chat_cases.h"

namespace foretoken {
namespace {

std::string m(const std::string& element) { return "]<]minimax[>[" + element; }

std::string call(const std::string& name, const std::string& inner) {
  return m("<invoke name=\"" + name + "\">") + inner + m("</invoke>");
}

TEST(NestedCalls, MiniMax) {
  const std::string open = m("<tool_call>") + "\n";
  const std::string close = "\n" + m("</tool_call>");
  check_cases(options_of("minimax_m3"),
              {
                  {"texts and numbers",
                   "Hm." + open +
                       call("get_weather", m("<city>") + "Pa\"ris" + m("</city>") + "\n" +
                                               m("<days>") + "3" + m("</days>")) +
                       close + " So.",
                   {"", "Hm. So.", {{"get_weather", R"({"city": "Pa\"ris", "days": 3})"}}}},
                  {"objects, lists and a second call",
                   open +
                       call("get_weather", m("<where>") + m("<at>") + m("<item>") + "1" +
                                               m("</item>") + m("<item>") + "b" + m("</item>") +
                                               m("</at>") + "\n" + m("</where>")) +
                       "\n" + call("now", "") + close,
                   {"", "", {{"get_weather", R"({"where": {"at": ["1", "b"]}})"}, {"now", "{}"}}}},
                  {"cut off in a text",
                   open + m("<invoke name=\"get_weather\">") + m("<city>") + "Par",
                   {"", "", {{"get_weather", R"({"city": "Par"})"}}}},
                  {"cut off in a list",
                   open + m("<invoke name=\"f\">") + m("<a>") + m("<item>") + "x" + m("</item>"),
                   {"", "", {{"f", R"({"a": ["x"]})"}}}},
                  {"an end that is missing",
                   open + m("<invoke name=\"f\">") + m("<a>") + "x" + close,
                   {"", "", {{"f", "{\"a\": \"x\\n\"}"}}}},
                  {"text between elements",
                   open + m("<invoke name=\"f\">") + "oops" + m("</invoke>") + close + "So.",
                   {"", "\nSo.", {{"f", "{}"}}}},
                  {"words about the format",
                   "It begins with " + m("<tool_call>") + ", then comes the name.",
                   {"", "It begins with " + m("<tool_call>") + ", then comes the name.", {}}},
              });
}

}  // namespace
}  // namespace foretoken
