#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files/text_file.h"
#include "text/chat_template.h"
#include "text/text_fixtures.h"
#include "text/tokenizer_config.h"

// Released chat templates, and questions about the language, against what Hugging Face transformers
// renders (tools/golden/gen_chat_templates.py says what the results mean).

namespace foretoken {
namespace {

using nlohmann::ordered_json;

ordered_json read(const std::filesystem::path& file) {
  return ordered_json::parse(std::ifstream(file));
}

class ChatTemplateGolden : public ::testing::Test {
 protected:
  ChatTemplateGolden() {
    setenv("TZ", "UTC", 1);
    tzset();
    const ordered_json cases = read(folder_ / "cases.json");
    options_.now = cases.at("now");
    special_tokens_ = cases.at("special_tokens").get<std::map<std::string, std::string>>();
    for (const ordered_json& row : cases.at("rows")) cases_[row[0]] = row[1];
  }

  Result<ChatTemplate> compile_golden(const std::string& source) const {
    TokenizerConfig config;
    config.special_tokens = special_tokens_;
    config.chat_templates["default"] = source;
    return ChatTemplate::compile(config, "the test");
  }

  Result<std::string> render(const ChatTemplate& compiled, const ordered_json& kase, bool prompt) {
    ordered_json arguments = kase.value("arguments", ordered_json::object());
    for (const char* name : {"tools", "documents"}) {
      if (kase.contains(name)) arguments[name] = kase[name];
    }
    options_.add_generation_prompt = prompt;
    options_.continue_final_message = kase.value("continue_final_message", false);
    return compiled.render(kase.at("messages").dump(), arguments.dump(), options_);
  }

  static void expect(const Result<std::string>& result, const ordered_json& wanted) {
    const std::string kind = wanted[0];
    if (kind == "text" || kind == "digest") {
      ASSERT_TRUE(result.ok()) << result.status().message();
    }
    if (kind == "text") {
      EXPECT_EQ(result.value(), wanted[1].get<std::string>());
    } else if (kind == "digest") {
      EXPECT_EQ(fnv1a(result.value()), wanted[1].get<std::string>()) << result.value();
      EXPECT_EQ(result.value().size(), wanted[2].get<size_t>());
    } else {
      ASSERT_FALSE(result.ok()) << result.value();
      const std::string words = kind == "refuses" ? wanted[1].get<std::string>() : "";
      EXPECT_EQ(
          result.status().message().find("refuses these messages: " + words) != std::string::npos,
          kind == "refuses")
          << result.status().message();
    }
  }

  const std::filesystem::path folder_ = data_folder("chat_templates");
  ChatTemplate::Options options_;
  std::map<std::string, std::string> special_tokens_;
  std::map<std::string, ordered_json> cases_;
};

TEST_F(ChatTemplateGolden, EveryReleasedTemplateRendersAlike) {
  size_t num_templates = 0;
  size_t num_texts = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    if (entry.path().extension() != ".jinja") continue;
    ++num_templates;
    const auto compiled = compile_golden(read_text_file(entry.path()).value());
    ASSERT_TRUE(compiled.ok()) << entry.path() << compiled.status().message();
    const ordered_json golden =
        read(std::filesystem::path(entry.path()).replace_extension(".json"));
    EXPECT_EQ(golden.at("rows").size(), 2 * cases_.size());
    for (const ordered_json& row : golden.at("rows")) {
      SCOPED_TRACE(entry.path().filename().string() + " " + row.dump().substr(0, 60));
      expect(render(compiled.value(), cases_.at(row[0]), row[1]), row[2]);
      num_texts += row[2][0] == "digest" || row[2][0] == "text";
    }
  }
  EXPECT_EQ(num_templates, 43u);
  EXPECT_GT(num_texts, 4000u);
}

TEST_F(ChatTemplateGolden, TheLanguageMeansWhatPythonMeans) {
  const ordered_json golden = read(folder_ / "language.json");
  const ordered_json kase = {
      {"messages",
       {{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", "Yo"}}}},
      {"arguments", {{"x", golden.at("x")}}}};
  EXPECT_GT(golden.at("rows").size(), 500u);
  for (const ordered_json& row : golden.at("rows")) {
    SCOPED_TRACE(row.dump());
    const auto compiled = compile_golden(row[0]);
    if (!compiled.ok()) {
      EXPECT_EQ(row[1][0], "fails") << compiled.status().message();
      continue;
    }
    expect(render(compiled.value(), kase, false), row[1]);
  }
}

}  // namespace
}  // namespace foretoken
