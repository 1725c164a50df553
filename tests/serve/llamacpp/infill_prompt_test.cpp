#include "serve/llamacpp/infill_prompt.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

class InfillPrompt : public test::ServeRig {
 protected:
  static std::string text_of(const InfillTokens& tokens, const InfillParts& parts) {
    const auto ids = infill_prompt(engine(), tokens, parts);
    EXPECT_TRUE(ids.ok()) << ids.status().message();
    std::string text;
    EXPECT_TRUE(engine().decode(ids.value(), false, &text).ok());
    return text;
  }
};

TEST_F(InfillPrompt, AModelWithoutTheTokensSaysSo) {
  EXPECT_EQ(find_infill_tokens(engine()).status().code(), StatusCode::kUnsupported);
}

// The bundled model's own special tokens stand for those of a gap.
TEST_F(InfillPrompt, PartsComeInOrder) {
  InfillTokens tokens{.prefix = 1, .suffix = 2, .middle = 3, .repository = {}, .file = {}};
  InfillParts parts{.prefix = "ab", .suffix = "cd", .prompt = " e", .extra = {}};
  EXPECT_EQ(text_of(tokens, parts), "<|user|>ab e<|assistant|>cd<|end|>");
  parts.extra = {{"f.py", "x"}};
  EXPECT_EQ(text_of(tokens, parts), "x<|user|>ab e<|assistant|>cd<|end|>");
  tokens.repository = tokens.file = 0;
  EXPECT_EQ(text_of(tokens, parts),
            "<|endoftext|>myproject\n<|endoftext|>f.py\nx<|endoftext|>filename\n"
            "<|user|>ab e<|assistant|>cd<|end|>");
}

}  // namespace
}  // namespace foretoken
