#include "text/chat_prompt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "base/files/text_file.h"
#include "text/chat_conversations.h"
#include "text/text_fixtures.h"
#include "text/tokenizer_config.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

ChatTemplate compile(const std::string& source) {
  TokenizerConfig config;
  config.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  config.chat_templates["default"] = source;
  auto compiled = ChatTemplate::compile(config, "the test");
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  return std::move(compiled).value();
}

std::vector<std::filesystem::path> released_templates() {
  std::vector<std::filesystem::path> files;
  std::vector<std::filesystem::path> folders = {data_folder("chat_templates")};
  // Templates whose licences keep them out of the tree.
  if (const char* more = std::getenv("FORETOKEN_MORE_TEMPLATES")) folders.push_back(more);
  for (const auto& folder : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".jinja") files.push_back(entry.path());
    }
  }
  return files;
}

Result<ChatPrompt> prompt_of(const ChatTemplate& chat, const json& messages,
                             const json& arguments = json::object()) {
  return make_chat_prompt(chat, messages.dump(), arguments.dump(), {.add_generation_prompt = true});
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

// Every word of every conversation is in the prompt, or a warning names what is not.
TEST(ChatPrompt, EveryConversationReachesTheModelInEveryTemplate) {
  size_t num_shown = 0;
  size_t num_told = 0;
  for (const auto& file : released_templates()) {
    const ChatTemplate chat = compile(read_text_file(file).value());
    for (const test::Conversation& talk : test::conversations()) {
      SCOPED_TRACE(file.filename().string() + ": " + talk.name);
      json arguments = json::object();
      if (talk.has_tools) arguments["tools"] = test::weather_tools();
      const auto prompt = prompt_of(chat, talk.messages, arguments);
      EXPECT_TRUE(prompt.ok()) << prompt.status().message();
      if (!prompt.ok()) continue;
      std::vector<std::string> words = talk.words;
      if (talk.has_tools) words.emplace_back("weather_of_place");
      for (const std::string& word : words) {
        const bool shown = prompt.value().text.find(word) != std::string::npos;
        (shown ? num_shown : num_told) += 1;
        EXPECT_TRUE(shown || !prompt.value().warnings.empty()) << word << " is nowhere in\n"
                                                               << prompt.value().text;
        if (!shown && std::getenv("FORETOKEN_MORE_TEMPLATES") != nullptr) {
          std::cout << file.filename().string() << ": " << talk.name << ": " << word << ": "
                    << joined(prompt.value().warnings);
        }
      }
    }
  }
  EXPECT_GT(num_shown, 50 * num_told) << num_shown << " shown, " << num_told << " told";
}

// What the templates can do stays as it was: a usual agent's turn is rendered as it is.
TEST(ChatPrompt, WhatATemplateTakesStaysAsItWasSent) {
  for (const auto& file : released_templates()) {
    SCOPED_TRACE(file.filename().string());
    const ChatTemplate chat = compile(read_text_file(file).value());
    const json messages = json::parse(R"([{"role": "user", "content": "What is two and two?"},
        {"role": "assistant", "content": "It is four, of course."},
        {"role": "user", "content": "And three and three?"}])");
    const auto made = prompt_of(chat, messages);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(joined(made.value().warnings), "");
    const auto plain = chat.render(messages.dump(), "", {.add_generation_prompt = true});
    if (plain.ok() && plain.value().find("And three") != std::string::npos) {
      EXPECT_EQ(made.value().text, plain.value());
    }
  }
}

// gpt-oss's template writes it as part of a text; others show what they are given.
TEST(ChatPrompt, ToolsNeedNoDescription) {
  const json ask = json::array({{{"role", "user"}, {"content", "hi"}}});
  const json tools = {{{"type", "function"}, {"function", {{"name", "f"}}}},
                      {{"type", "function"}, {"function", {{"name", "g"}, {"description", "G"}}}}};
  const ChatTemplate strict = compile(
      "{% for t in tools %}[{{ t.function.name + ':' + t.function.description }}]{% endfor %}"
      "{{ messages[0].content }}");
  const auto prompt = prompt_of(strict, ask, {{"tools", tools}});
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_EQ(prompt.value().text, "[f:][g:G]hi");
  const ChatTemplate shown = compile("{{ tools | tojson }}{{ messages[0].content }}");
  EXPECT_EQ(prompt_of(shown, ask, {{"tools", tools}}).value().text.find("description\": \"\""),
            std::string::npos);
}

// Calls of a history that was cut stay calls.
TEST(ChatPrompt, AConversationWithoutAQuestionGetsOne) {
  const ChatTemplate chat =
      compile(read_text_file(data_folder("chat_templates") / "Qwen3.5-4B.jinja").value());
  const json call = {{"id", "c"},
                     {"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", R"({"a": 1})"}}}};
  const json said = {{{"role", "system"}, {"content", "Be brief."}},
                     {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}},
                     {{"role", "tool"}, {"tool_call_id", "c"}, {"content", "42"}}};
  for (const size_t count : {said.size(), size_t{1}}) {
    const json messages(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(count));
    const auto prompt = prompt_of(chat, messages);
    ASSERT_TRUE(prompt.ok()) << prompt.status().message();
    const std::string& text = prompt.value().text;
    EXPECT_NE(text.find("Be brief.<|im_end|>\n<|im_start|>user\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("<function=f>") != std::string::npos, count > 1) << text;
    ASSERT_EQ(prompt.value().warnings.size(), 1u) << joined(prompt.value().warnings);
  }
}

TEST(ChatPrompt, ARefusalOfEverythingKeepsItsWords) {
  const ChatTemplate chat = compile("{{ raise_exception('only odd days') }}");
  const auto prompt = prompt_of(chat, json::parse(R"([{"role": "user", "content": "Hi"}])"));
  EXPECT_NE(prompt.status().message().find("only odd days"), std::string::npos);
}

TEST(ChatPrompt, WhatThePromptLacksIsToldByKindAndPlace) {
  const ChatTemplate chat = compile(
      "{% for m in messages %}{% if m.role != 'critic' %}<{{ m.role }}>{{ m.content }}{% endif %}"
      "{% endfor %}");
  const json messages = json::parse(R"([{"role": "user", "content": "Hi"},
      {"role": "critic", "content": "This is not very good."}, {"role": "critic", "content": "No"},
      {"role": "user", "content": "Go on"}])");
  json arguments = {{"tools", test::weather_tools()}};
  const auto prompt = prompt_of(chat, messages, arguments);
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  ASSERT_EQ(prompt.value().warnings.size(), 2u) << joined(prompt.value().warnings);
  EXPECT_NE(prompt.value().warnings[0].find("tools weather_of_place"), std::string::npos);
  EXPECT_NE(prompt.value().warnings[1].find("the content of critic messages (messages 2, 3)"),
            std::string::npos)
      << prompt.value().warnings[1];
}

TEST(ChatPrompt, RolesThatAreShownAsTheUsersAreTold) {
  const json messages = json::parse(R"([{"role": "user", "content": "Hi"},
      {"role": "bot", "content": "Hello"}, {"role": "bot", "content": "Yes"},
      {"role": "User", "content": "Go on"}])");
  const ChatTemplate lax = compile(
      "{% for m in messages %}{{ '<a>' if m.role == 'assistant' else '<u>' }}{{ m.content }}"
      "{% endfor %}");
  const auto told = prompt_of(lax, messages);
  ASSERT_TRUE(told.ok()) << told.status().message();
  ASSERT_EQ(told.value().warnings.size(), 1U) << joined(told.value().warnings);
  EXPECT_NE(
      told.value().warnings[0].find("message 2: the chat template shows the role 'bot' as the "
                                    "user's"),
      std::string::npos)
      << told.value().warnings[0];
  const ChatTemplate verbatim =
      compile("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  EXPECT_EQ(joined(prompt_of(verbatim, messages).value().warnings), "");
  const ChatTemplate own = compile(
      "{% for m in messages %}{{ '<a>' if m.role == 'bot' else '<u>' }}{{ m.content }}"
      "{% endfor %}");
  EXPECT_EQ(joined(prompt_of(own, messages).value().warnings), "");
}

// Each unknown role costs a prompt: few are looked at, however many a body holds.
TEST(ChatPrompt, FewUnknownRolesAreLookedAt) {
  json messages = json::array();
  for (int i = 0; i < 12; ++i) {
    messages.push_back({{"role", "r" + std::to_string(i)}, {"content", "Hi"}});
  }
  const auto told =
      prompt_of(compile("{% for m in messages %}{{ m.content }}{% endfor %}"), messages);
  ASSERT_TRUE(told.ok()) << told.status().message();
  const auto num_told = std::ranges::count_if(told.value().warnings, [](const std::string& text) {
    return text.find("the chat template shows the role") != std::string::npos;
  });
  EXPECT_EQ(num_told, 4) << joined(told.value().warnings);
}

TEST(ChatPrompt, ThoughtsOfEarlierTurnsMayBeLeftOut) {
  const ChatTemplate chat =
      compile(read_text_file(data_folder("chat_templates") / "Qwen-Qwen3-0.6B.jinja").value());
  const json messages = json::parse(R"([{"role": "user", "content": "Tell me something."},
      {"role": "assistant", "content": "<think>\nLet me think about it.\n</think>\n\nSomething it is."},
      {"role": "user", "content": "Something else, please."}])");
  const auto prompt = prompt_of(chat, messages);
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(prompt.value().text.find("Let me think"), std::string::npos);
  EXPECT_EQ(joined(prompt.value().warnings), "");
}

}  // namespace
}  // namespace foretoken
