#include <gtest/gtest.h>

#include "text/detokenizer.h"
#include "text/random_texts.h"
#include "text/text_fixtures.h"
#include "text/tokenizer.h"

// Streamed text against the decode of all ids at once, for every family of tokenizers.

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class DetokenizerFamily : public ::testing::TestWithParam<const char*> {
 protected:
  std::string streamed(const Ids& ids, bool skip_special_tokens) {
    Detokenizer detokenizer(*tokenizer_, {.skip_special_tokens = skip_special_tokens});
    std::string text;
    for (const int32_t id : ids) {
      const std::string piece = detokenizer.append(id).value();
      EXPECT_TRUE(is_whole_utf8(piece));
      text += piece;
    }
    return text + detokenizer.flush().value();
  }

  bool is_byte(int32_t id) const {
    const std::string token = tokenizer_->id_to_token(id).value_or("");
    return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
  }

  const std::unique_ptr<Tokenizer> tokenizer_ =
      load_fixture(data_folder("tokenizers") / GetParam());
};

TEST_P(DetokenizerFamily, PiecesOfRandomTextAddUp) {
  for (size_t at = 0; at < random_texts().size(); at += kTextStep) {
    const std::string& text = random_texts()[at];
    const Ids ids = tokenizer_->encode(text, at % 4 == 0).value();
    const bool skip = at % 2 != 0;
    ASSERT_EQ(streamed(ids, skip), tokenizer_->decode(ids, skip).value()) << text;
  }
}

TEST_P(DetokenizerFamily, PiecesOfAnyTokensAddUp) {
  SplitMix random(7);
  const auto size = static_cast<uint64_t>(tokenizer_->vocab_size());
  for (int round = 0; round < 3000; ++round) {
    Ids ids(random(24));
    for (int32_t& id : ids) {
      do {
        id = static_cast<int32_t>(random(size + 2));
      } while (is_byte(id));
    }
    const bool skip = round % 2 == 0;
    ASSERT_EQ(streamed(ids, skip), tokenizer_->decode(ids, skip).value())
        << ::testing::PrintToString(ids);
  }
}

// The stream may be cut anywhere: the second half goes on from the first as its prompt.
TEST_P(DetokenizerFamily, AnyCutContinues) {
  SplitMix random(8);
  for (size_t i = 0; i < 2000; ++i) {
    const Ids ids = tokenizer_->encode("The " + random_texts()[i] + " end", false).value();
    const size_t cut = 1 + random(ids.size());
    const Ids before(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut));
    const std::string head = tokenizer_->decode(before, true).value();
    const std::string whole = tokenizer_->decode(ids, true).value();
    // Half a character belongs to neither side.
    if (head.ends_with("\xEF\xBF\xBD") || !whole.starts_with(head)) continue;
    Detokenizer detokenizer(*tokenizer_, {}, before);
    std::string tail;
    for (size_t k = cut; k < ids.size(); ++k) tail += detokenizer.append(ids[k]).value();
    tail += detokenizer.flush().value();
    ASSERT_EQ(head + tail, whole) << random_texts()[i];
  }
}

TEST_P(DetokenizerFamily, NoSpacesBetweenAddedTokensWhereAskedFor) {
  const int32_t think = tokenizer_->token_to_id("<think>").value();
  for (const bool spaces : {true, false}) {
    Detokenizer detokenizer(
        *tokenizer_, {.skip_special_tokens = false, .spaces_between_special_tokens = spaces});
    std::string text;
    for (int i = 0; i < 3; ++i) text += detokenizer.append(think).value();
    text += detokenizer.flush().value();
    EXPECT_EQ(text, spaces ? tokenizer_->decode(Ids{think, think, think}, false).value()
                           : "<think><think><think>");
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DetokenizerFamily,
                         ::testing::Values("gpt2", "llama3", "qwen2", "deepseek", "llama2", "gemma",
                                           "unigram", "wordpiece"),
                         [](const auto& family) { return std::string(family.param); });

// The one exception, exactly: in a run of byte tokens, characters that were complete are shown and
// stay, and the bytes after the last of them become one mark each.
class ByteRuns : public DetokenizerFamily {};

TEST_P(ByteRuns, CompleteCharactersStayAndTheRestBecomesMarks) {
  SplitMix random(9);
  const int32_t a = tokenizer_->token_to_id("a").value();
  const int32_t first = tokenizer_->token_to_id("<0x00>").value();
  const std::vector<std::string> pieces = {"é",        "好",       "😀",   "\xff", "\xe5",
                                           "\xe5\xa5", "\xf0\x9f", "\x80", "x"};
  for (int round = 0; round < 10000; ++round) {
    Ids ids = {a};
    std::string expected = "a";
    std::string unfinished;
    const auto end_run = [&] {
      for (size_t i = 0; i < unfinished.size(); ++i) expected += "\xEF\xBF\xBD";
      unfinished.clear();
    };
    for (uint64_t part = random(10); part > 0; --part) {
      if (random(4) == 0) {
        end_run();
        ids.push_back(a);
        expected += 'a';
        continue;
      }
      for (const char byte : pieces[random(pieces.size())]) {
        ids.push_back(first + static_cast<unsigned char>(byte));
        unfinished += byte;
        if (!is_whole_utf8(unfinished)) continue;
        expected += unfinished;
        unfinished.clear();
      }
    }
    end_run();
    ASSERT_EQ(streamed(ids, true), expected) << ::testing::PrintToString(ids);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ByteRuns, ::testing::Values("llama2", "gemma"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace foretoken
