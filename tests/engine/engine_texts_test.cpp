#include "engine/engine_texts.h"

#include "engine/dialled_engine.h"

namespace foretoken {
namespace {

Result<EngineTexts> load(const EngineConfig& config) {
  return EngineTexts::load(config, ModelFiles(bundled_model_folder()));
}

TEST(EngineTexts, AreTextsAndBack) {
  const EngineTexts texts = load({}).value();
  ASSERT_NE(texts.tokenizer(), nullptr);
  std::vector<int32_t> ids;
  ASSERT_TRUE(texts.encode("the dog", false, &ids).ok());
  std::string text;
  ASSERT_TRUE(texts.decode(ids, true, &text).ok());
  EXPECT_EQ(text, "the dog");
  std::string bytes;
  EXPECT_TRUE(texts.token_bytes(ids.front(), &bytes).ok());
  EXPECT_EQ(texts.token_bytes(1 << 30, &bytes).code(), StatusCode::kInvalidArgument);
}

TEST(EngineTexts, WithoutATokenizerNothingIsConverted) {
  EngineConfig config;
  config.skip_tokenizer_init = true;
  const EngineTexts texts = load(config).value();
  EXPECT_EQ(texts.tokenizer(), nullptr);
  std::vector<int32_t> ids;
  EXPECT_FALSE(texts.encode("the dog", false, &ids).ok());
  std::string prompt;
  EXPECT_FALSE(texts.render_chat("[]", "", &prompt, nullptr).ok());
  EXPECT_EQ(texts.chat_template(true), nullptr);
}

TEST(EngineTexts, AChosenTemplateMustBeOne) {
  EngineConfig config;
  config.chat_template = "{{ messages[0].content }}!";
  std::string prompt;
  const EngineTexts texts = load(config).value();
  ASSERT_TRUE(
      texts.render_chat(R"([{"role": "user", "content": "hi"}])", "", &prompt, nullptr).ok());
  EXPECT_EQ(prompt, "hi!");
  config.chat_template = "{% if %}";
  EXPECT_FALSE(load(config).ok());
}

}  // namespace
}  // namespace foretoken
