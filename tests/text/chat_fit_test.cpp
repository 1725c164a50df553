#include "text/chat_fit.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

std::string fitted_conversation(const char* messages, const ChatTemplateTraits& traits,
                                std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> ignored;
  const auto made =
      fit_conversation(json::parse(messages), traits, warnings == nullptr ? &ignored : warnings);
  return made.ok() ? made.value().dump() : made.status().message();
}

TEST(ChatFit, ContentsGetTheFormOfTheirRole) {
  ChatTemplateTraits traits;
  traits.user_content = {.text = false, .parts = true};
  EXPECT_EQ(
      fitted_conversation(R"([{"role":"system","content":"a"},{"role":"user","content":"b"},
                 {"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}])",
                          traits),
      R"([{"role":"system","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]},)"
      R"({"role":"assistant","content":"c\nd"}])");
  EXPECT_NE(fitted_conversation(R"([{"role":"system","content":[{"type":"image"}]}])", traits)
                .find("not text"),
            std::string::npos);
  EXPECT_EQ(fitted_conversation(R"([{"role":"critic","content":[1]},5])", traits),
            R"([{"role":"critic","content":[1]},5])");
  EXPECT_NE(fitted_conversation("{}", traits).find("array"), std::string::npos);
}

TEST(ChatFit, NoContentIsEmptyWhereThereAreNoCalls) {
  EXPECT_EQ(fitted_conversation(R"([{"role":"assistant"},{"role":"tool","content":null}])", {}),
            R"([{"role":"assistant","content":""},{"role":"tool","content":""}])");
}

TEST(ChatFit, WordsBesideThoughtsAndCallsJoinTheThoughts) {
  ChatTemplateTraits traits;
  traits.shows_content_with_reasoning = false;
  EXPECT_EQ(
      fitted_conversation(
          R"([{"role":"assistant","reasoning":"hm","content":"So","tool_calls":[{"name":"f"}]}])",
          traits),
      R"([{"role":"assistant","reasoning":"hm\n\nSo","content":"",)"
      R"("tool_calls":[{"name":"f","arguments":{}}]}])");
}

TEST(ChatFit, EmptyListsOfCallsAreNone) {
  EXPECT_EQ(fitted_conversation(
                R"([{"role":"assistant","content":"a","tool_calls":[]},
                    {"role":"assistant","content":"b","tool_calls":null}])",
                {}),
            R"([{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}])");
}

TEST(ChatFit, AnswersGetWordsWhereTheyNeedSome) {
  ChatTemplateTraits traits;
  traits.takes_empty_answers = false;
  EXPECT_EQ(fitted_conversation(R"([{"role":"assistant","content":null,"reasoning":"hm"},
                                    {"role":"assistant","content":""}])",
                                traits),
            R"([{"role":"assistant","content":"hm"},{"role":"assistant","content":" "}])");
}

TEST(ChatFit, TheLeastTemplateGetsQuestionsAndAnswersInTurns) {
  std::vector<std::string> warnings;
  ChatTemplateTraits traits = least_traits({});
  traits.shows_system = false;
  const std::string made = fitted_conversation(
      R"([{"role":"system","content":"a"},{"role":"user","content":"b"},
          {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":""}}]},
          {"role":"tool","content":"r"},{"role":"user","content":"c"}])",
      traits, &warnings);
  const json messages = json::parse(made);
  ASSERT_EQ(messages.size(), 3u) << made;
  EXPECT_EQ(messages[0]["content"], "a\n\nb");
  EXPECT_EQ(messages[1]["content"], R"({"tool_call":{"name":"f","arguments":{}}})");
  EXPECT_EQ(messages[2]["content"], "{\"tool_response\":{\"tool\":\"f\",\"content\":\"r\"}}\n\nc");
  EXPECT_EQ(warnings.size(), 3u);
}

}  // namespace
}  // namespace foretoken
