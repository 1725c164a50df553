#include "engine/request/chat_arguments.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace foretoken {
namespace {

TEST(ChatArguments, HaveDefaults) {
  const auto arguments = parse_chat_arguments("");
  ASSERT_TRUE(arguments.ok());
  EXPECT_TRUE(arguments.value().add_generation_prompt);
  EXPECT_FALSE(arguments.value().continue_final_message);
  EXPECT_TRUE(arguments.value().variables.empty());
}

TEST(ChatArguments, SwitchesLeaveTheVariables) {
  const auto arguments = parse_chat_arguments(
      R"({"add_generation_prompt": false, "tools": [{"name": "f"}], "enable_thinking": true})");
  ASSERT_TRUE(arguments.ok()) << arguments.status().message();
  EXPECT_FALSE(arguments.value().add_generation_prompt);
  const auto variables = nlohmann::json::parse(arguments.value().variables);
  EXPECT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables["tools"][0]["name"], "f");
  // Going on with the last message leaves no room for a new turn.
  const auto goes_on = parse_chat_arguments(R"({"continue_final_message": true})");
  EXPECT_TRUE(goes_on.value().continue_final_message);
  EXPECT_FALSE(goes_on.value().add_generation_prompt);
}

TEST(ChatArguments, KwargsJoinTheOthers) {
  const auto arguments = parse_chat_arguments(
      R"({"tools": [], "chat_template_kwargs": {"enable_thinking": false, "tools": [1],
          "add_generation_prompt": false}})");
  ASSERT_TRUE(arguments.ok()) << arguments.status().message();
  const auto variables = nlohmann::json::parse(arguments.value().variables);
  EXPECT_EQ(variables, nlohmann::json::parse(R"({"tools": [], "enable_thinking": false})"));
  EXPECT_FALSE(arguments.value().add_generation_prompt);
}

TEST(ChatArguments, NameWhatIsWrong) {
  const auto message_of = [](const char* json) {
    return parse_chat_arguments(json).status().message();
  };
  EXPECT_NE(message_of("[").find("chat template: not valid JSON"), std::string::npos);
  EXPECT_NE(message_of(R"({"add_generation_prompt": 1})").find("true or false"), std::string::npos);
  EXPECT_NE(message_of(R"({"chat_template_kwargs": []})").find("must be an object"),
            std::string::npos);
  EXPECT_NE(message_of(R"({"add_generation_prompt": true, "continue_final_message": true})")
                .find("exclude"),
            std::string::npos);
}

TEST(ChatArguments, KeepTheOrderOfKeys) {
  const auto arguments = parse_chat_arguments(
      R"({"tools":[{"type":"function","name":"f","a":1}],"chat_template_kwargs":{"z":1,"b":2}})");
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ(arguments.value().variables,
            R"({"z":1,"b":2,"tools":[{"type":"function","name":"f","a":1}]})");
}

}  // namespace
}  // namespace foretoken
