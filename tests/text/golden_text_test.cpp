#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/folders.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

// The bundled model's tokenizer and chat template against Hugging Face transformers
// (tests/golden/foretoken-7m/text.json, made by tools/golden/gen_golden.py).

namespace foretoken {
namespace {

const std::string kSource = foretoken::kSourceFolder;

nlohmann::json golden_text() {
  std::ifstream file(kSource + "/tests/golden/foretoken-7m/text.json");
  return nlohmann::json::parse(file);
}

TEST(GoldenText, TokenizerMatchesTheReference) {
  const auto tokenizer = load_hf_tokenizer(kSource + "/models/foretoken-7m");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const nlohmann::json golden = golden_text();
  ASSERT_FALSE(golden.at("tokenizer").empty());
  for (const nlohmann::json& entry : golden.at("tokenizer")) {
    const auto ids = entry.at("ids").get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.value()->encode(entry.at("text").get<std::string>(), false).value(), ids);
    EXPECT_EQ(tokenizer.value()->decode(ids, false).value(),
              entry.at("decoded").get<std::string>());
  }
}

TEST(GoldenText, ChatTemplateMatchesTheReference) {
  const auto chat = ChatTemplate::load(kSource + "/models/foretoken-7m");
  ASSERT_TRUE(chat.ok()) << chat.status().message();
  const nlohmann::json golden = golden_text();
  ASSERT_FALSE(golden.at("chat").empty());
  for (const nlohmann::json& entry : golden.at("chat")) {
    EXPECT_EQ(chat.value()
                  .render(entry.at("messages").dump(), "", entry.at("add_generation_prompt"))
                  .value(),
              entry.at("text").get<std::string>());
  }
}

}  // namespace
}  // namespace foretoken
