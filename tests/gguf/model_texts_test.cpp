#include "gguf/model_texts.h"

#include <gtest/gtest.h>

#include "gguf/gguf_bytes.h"
#include "support/folders.h"

namespace foretoken {
namespace {

TEST(ModelTexts, OfAFolder) {
  const std::string folder = std::string(foretoken::kSourceFolder) + "/models/foretoken-7m";
  EXPECT_TRUE(has_model_text(folder, "config.json"));
  EXPECT_TRUE(read_model_text(folder, "config.json").value()->starts_with("{"));
  EXPECT_FALSE(has_model_text(folder, "odd.json"));
  EXPECT_EQ(read_model_text(folder, "odd.json").value(), std::nullopt);
}

TEST(ModelTexts, OfAFile) {
  const std::string file = test::golden_gguf("llama.gguf");
  EXPECT_TRUE(has_model_text(file, "config.json"));
  EXPECT_NE(read_model_text(file, "config.json").value()->find("LlamaForCausalLM"),
            std::string::npos);
  EXPECT_EQ(read_model_text(file, "chat_template.jinja").value(), std::nullopt);
  EXPECT_FALSE(read_model_text(file, "tokenizer.json").ok());
  EXPECT_EQ(read_model_text("/nowhere/x.gguf", "config.json").status().code(),
            StatusCode::kNotFound);
}

}  // namespace
}  // namespace foretoken
