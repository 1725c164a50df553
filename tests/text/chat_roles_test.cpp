#include "text/chat_roles.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// [["system", "a"], ...] as messages, and back.
json messages_of(const char* pairs) {
  json messages = json::array();
  for (const json& pair : json::parse(pairs)) {
    messages.push_back({{"role", pair[0]}, {"content", pair[1]}});
  }
  return messages;
}

std::string pairs_of(const json& messages) {
  json pairs = json::array();
  for (const json& message : messages) pairs.push_back({message["role"], message["content"]});
  return pairs.dump();
}

std::string fitted_instructions(const char* pairs, const ChatTemplateTraits& traits,
                                std::vector<std::string>* warnings) {
  json messages = messages_of(pairs);
  fit_instructions(messages, traits, warnings);
  return pairs_of(messages);
}

constexpr const char* kMixed =
    R"([["system","a"],["developer","b"],["user","c"],["system","d"],["user","e"]])";

TEST(ChatRoles, WhatIsTakenStays) {
  std::vector<std::string> warnings;
  EXPECT_EQ(fitted_instructions(kMixed, {}, &warnings), kMixed);
  EXPECT_TRUE(warnings.empty());
}

TEST(ChatRoles, InstructionsAreMergedWhereTheyMust) {
  std::vector<std::string> warnings;
  ChatTemplateTraits traits;
  traits.shows_several_systems = false;
  EXPECT_EQ(fitted_instructions(kMixed, traits, &warnings),
            R"([["system","a\n\nb"],["user","c"],["system","d"],["user","e"]])");
  EXPECT_TRUE(warnings.empty());
  traits.shows_late_system = false;
  EXPECT_EQ(fitted_instructions(kMixed, traits, &warnings),
            R"([["system","a\n\nb"],["user","c\n\nd"],["user","e"]])");
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(fitted_instructions(R"([["user","c"],["developer","d"]])", traits, &warnings),
            R"([["user","c\n\nd"]])");
  traits.shows_developer = false;
  EXPECT_EQ(fitted_instructions(R"([["developer","c"],["user","d"]])", traits, &warnings),
            R"([["system","c"],["user","d"]])");
}

// Claude Code tells after each result how many tokens are left.
TEST(ChatRoles, LateInstructionsLeaveTheBeginningAsItWas) {
  std::vector<std::string> warnings;
  ChatTemplateTraits traits;
  traits.shows_late_system = false;
  const auto fitted = [&](const char* pairs) {
    return fitted_instructions(pairs, traits, &warnings);
  };
  EXPECT_EQ(fitted(R"([["system","a"],["user","b"],["assistant","c"],["tool","d"],["system","e"],
                       ["system","f"],["assistant","g"],["tool","h"],["system","i"]])"),
            R"([["system","a"],["user","b"],["assistant","c"],["tool","d\n\ne\n\nf"],)"
            R"(["assistant","g"],["tool","h\n\ni"]])");
  EXPECT_EQ(fitted(R"([["user","b"],["assistant","c"],["system","d"],["tool","e"],["tool","f"]])"),
            R"([["user","b"],["assistant","c"],["tool","e\n\nd"],["tool","f"]])");
  EXPECT_EQ(fitted(R"([["user","b"],["assistant","c"],["system","d"],["user","e"]])"),
            R"([["user","b"],["assistant","c"],["user","d\n\ne"]])");
  EXPECT_EQ(fitted(R"([["user","b"],["assistant","c"],["system","d"]])"),
            R"([["user","b"],["assistant","c"],["user","d"]])");
  EXPECT_EQ(fitted(R"([["user","b"],["assistant","c"],["system","d"],["assistant","e"]])"),
            R"([["user","b"],["assistant","c"],["user","d"],["assistant","e"]])");
  EXPECT_EQ(warnings.size(), 5u);
}

TEST(ChatRoles, AQuestionStandsBeforeAGreeting) {
  std::vector<std::string> warnings;
  json messages = messages_of(R"([["system","a"],["assistant","b"],["user","c"]])");
  begin_with_question(messages, &warnings);
  EXPECT_EQ(pairs_of(messages), R"([["system","a"],["user",""],["assistant","b"],["user","c"]])");
  EXPECT_EQ(warnings.size(), 1u);
  begin_with_question(messages, &warnings);
  EXPECT_EQ(messages.size(), 4u);
  messages = messages_of(R"([["system","a"]])");
  begin_with_question(messages, &warnings);
  EXPECT_EQ(messages.size(), 1u);
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(ChatRoles, AConversationWithoutAnyQuestionGetsOne) {
  json messages = messages_of(R"([["system","a"],["assistant","b"],["tool","c"]])");
  EXPECT_TRUE(add_question(messages));
  EXPECT_EQ(pairs_of(messages), R"([["system","a"],["user",""],["assistant","b"],["tool","c"]])");
  EXPECT_FALSE(add_question(messages));
  messages = messages_of(R"([["system","a"]])");
  EXPECT_TRUE(add_question(messages));
  EXPECT_EQ(pairs_of(messages), R"([["system","a"],["user",""]])");
}

TEST(ChatRoles, WithoutASystemRoleTheFirstQuestionHoldsThem) {
  std::vector<std::string> warnings;
  ChatTemplateTraits traits;
  traits.shows_system = traits.shows_developer = false;
  EXPECT_EQ(fitted_instructions(kMixed, traits, &warnings),
            R"([["user","a\n\nb\n\nc\n\nd"],["user","e"]])");
  EXPECT_EQ(warnings.size(), 2u);
  EXPECT_EQ(fitted_instructions(R"([["system","a"]])", traits, &warnings), R"([["user","a"]])");
  EXPECT_EQ(fitted_instructions(R"([["system","a"],["user",[{"type":"text","text":"b"}]]])", traits,
                                &warnings),
            R"([["user",[{"type":"text","text":"a"},{"type":"text","text":"b"}]]])");
}

TEST(ChatRoles, RepeatedRolesBecomeOne) {
  json messages = messages_of(R"([["user","a"],["user","b"],["assistant","c"],["assistant","d"]])");
  messages.push_back({{"role", "assistant"}, {"content", "e"}, {"tool_calls", {1}}});
  merge_repeated_roles(messages);
  EXPECT_EQ(pairs_of(messages), R"([["user","a\n\nb"],["assistant","c\n\nd"],["assistant","e"]])");
}

}  // namespace
}  // namespace foretoken
