#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/files/text_file.h"
#include "support/scratch_folder.h"
#include "text/text_fixtures.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

// The pieces of each token, and of flush at the end.
std::vector<std::string> stream(Detokenizer& detokenizer, const Ids& ids) {
  std::vector<std::string> pieces;
  for (const int32_t id : ids) pieces.push_back(detokenizer.append(id).value());
  pieces.push_back(detokenizer.flush().value());
  return pieces;
}

std::string join(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) {
    EXPECT_TRUE(is_whole_utf8(piece));
    text += piece;
  }
  return text;
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids, bool skip_special = true) {
  Detokenizer detokenizer(tokenizer, {skip_special});
  return join(stream(detokenizer, ids));
}

// The sentencepiece fixture with the other common decoder.
std::unique_ptr<Tokenizer> metaspace_tokenizer(const test::ScratchFolder& folder) {
  std::string file_text = read_text_file(data_folder("sentencepiece") / "tokenizer.json").value();
  const size_t begin = file_text.find(R"("decoder")");
  const size_t end = file_text.find(R"("model")");
  file_text.replace(begin, end - begin,
                    R"("decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always",)"
                    R"("split":false},)");
  folder.write("tokenizer.json", file_text);
  return load_fixture(folder.path());
}

TEST(Detokenizer, HoldsHalfAnEmojiBack) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  Detokenizer detokenizer(*tokenizer, {});
  const std::vector<std::string> expected = {"", "", "", "😀", "a", ""};
  EXPECT_EQ(stream(detokenizer, tokenizer->encode("a", false).value()).size(), 2u);
  Detokenizer bytes(*tokenizer, {});
  const auto id = [&](const char* name) { return tokenizer->token_to_id(name).value(); };
  EXPECT_EQ(stream(bytes, {id("ð"), id("Ł"), id("ĺ"), id("Ģ"), id("a")}), expected);
}

TEST(Detokenizer, ShowsWholeCharactersBeforeAnIncompleteOne) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  Detokenizer detokenizer(*tokenizer, {});
  const int32_t a_and_lead_byte = tokenizer->token_to_id("aä").value();
  const int32_t rest = tokenizer->token_to_id("½ł").value();
  EXPECT_EQ(stream(detokenizer, {a_and_lead_byte, rest}),
            (std::vector<std::string>{"a", "你", ""}));
}

TEST(Detokenizer, FlushShowsTheIncompleteCharacter) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  Detokenizer detokenizer(*tokenizer, {});
  EXPECT_EQ(stream(detokenizer, {tokenizer->token_to_id("aä").value()}),
            (std::vector<std::string>{"a", "\xEF\xBF\xBD"}));
  EXPECT_EQ(detokenizer.flush().value(), "");
}

TEST(Detokenizer, SpecialTokensAreLeftOutOrShown) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  const Ids ids = tokenizer->encode("<|role|>the<|end|> the<|end|>", false).value();
  EXPECT_EQ(streamed(*tokenizer, ids, true), "the the");
  EXPECT_EQ(streamed(*tokenizer, ids, false), "<|role|>the<|end|> the<|end|>");
}

TEST(Detokenizer, LeadingSpaceDependsOnThePrompt) {
  auto tokenizer = load_fixture(data_folder("sentencepiece"));
  const Ids prompt = tokenizer->encode("the", true).value();
  const Ids answer = tokenizer->encode("hello", false).value();
  EXPECT_EQ(streamed(*tokenizer, answer), "hello");
  Detokenizer continued(*tokenizer, {}, prompt);
  EXPECT_EQ(join(stream(continued, answer)), " hello");
}

TEST(Detokenizer, ContinuesAnyPrompt) {
  std::mt19937 rng(6);
  for (const char* name : {"byte_level", "sentencepiece"}) {
    auto tokenizer = load_fixture(data_folder(name));
    for (int i = 0; i < 300; ++i) {
      const Ids prompt = tokenizer->encode("x" + random_text(rng, 10), true).value();
      const Ids answer = tokenizer->encode("a" + random_text(rng, 10), false).value();
      Ids both = prompt;
      both.insert(both.end(), answer.begin(), answer.end());
      Detokenizer detokenizer(*tokenizer, {}, prompt);
      EXPECT_EQ(tokenizer->decode(prompt, true).value() + join(stream(detokenizer, answer)),
                tokenizer->decode(both, true).value());
    }
  }
}

TEST(Detokenizer, SkippedTokenDoesNotEatASpace) {
  auto tokenizer = load_fixture(data_folder("sentencepiece"));
  const int32_t the = tokenizer->token_to_id("▁the").value();
  const int32_t space = tokenizer->token_to_id("▁").value();
  const Ids ids = {1, space, the, 2, the, space, 0, 0, space, the, 2, 2, the};
  for (const bool skip : {true, false}) {
    EXPECT_EQ(streamed(*tokenizer, ids, skip), tokenizer->decode(ids, skip).value());
  }
}

TEST(Detokenizer, PiecesAddUpToTheDecodeOfRandomText) {
  test::ScratchFolder folder;
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  tokenizers.push_back(load_fixture(data_folder("byte_level")));
  tokenizers.push_back(load_fixture(data_folder("sentencepiece")));
  std::mt19937 rng(2);
  for (const auto& tokenizer : tokenizers) {
    for (int i = 0; i < 500; ++i) {
      const std::string text = random_text(rng, 30);
      EXPECT_EQ(streamed(*tokenizer, tokenizer->encode(text, i % 2 == 0).value()), text);
    }
  }
}

TEST(Detokenizer, PiecesAddUpToTheDecodeOfAnyTokens) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  std::mt19937 rng(3);
  for (int i = 0; i < 2000; ++i) {
    // Mostly bytes that start or continue characters, so that all kinds of broken text occur.
    Ids ids(rng() % 40);
    for (int32_t& id : ids) {
      id = static_cast<int32_t>(rng() % 3 == 0 ? rng() % 285 : 128 + rng() % 128);
    }
    const bool skip = i % 2 == 0;
    EXPECT_EQ(streamed(*tokenizer, ids, skip), tokenizer->decode(ids, skip).value());
  }
}

// Random tokens without wrong bytes: ordinary tokens, and whole characters as byte tokens.
TEST(Detokenizer, ByteFallbackEqualsTheDecode) {
  test::ScratchFolder folder;
  const std::vector<std::string> characters = {"ß", "好", "😀", "\n"};
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  tokenizers.push_back(load_fixture(data_folder("sentencepiece")));
  tokenizers.push_back(metaspace_tokenizer(folder));
  std::mt19937 rng(4);
  for (size_t which = 0; which < tokenizers.size(); ++which) {
    const Tokenizer& tokenizer = *tokenizers[which];
    for (int i = 0; i < 1000; ++i) {
      Ids ids;
      for (unsigned k = rng() % 30; k > 0; --k) {
        if (which == 1 || rng() % 2 == 0) {
          ids.push_back(static_cast<int32_t>(259 + rng() % 41));
          continue;
        }
        for (const char byte : characters[rng() % characters.size()]) {
          ids.push_back(3 + static_cast<unsigned char>(byte));
        }
      }
      EXPECT_EQ(streamed(tokenizer, ids), tokenizer.decode(ids, true).value());
    }
  }
}

TEST(Detokenizer, WrongByteKeepsTheCharactersAlreadyShown) {
  auto tokenizer = load_fixture(data_folder("sentencepiece"));
  const auto byte = [](int value) { return 3 + value; };
  const int32_t a = tokenizer->token_to_id("a").value();
  const Ids ids = {byte(0xE5), byte(0xA5), byte(0xBD), byte(0xE5), a};
  EXPECT_EQ(streamed(*tokenizer, ids),
            "好\xEF\xBF\xBD"
            "a");
}

TEST(Detokenizer, LongRunsOfWrongBytesStayCheapAndExact) {
  const std::string mark = "\xEF\xBF\xBD";
  for (const char* name : {"byte_level", "sentencepiece"}) {
    auto tokenizer = load_fixture(data_folder(name));
    const int32_t wrong = std::string(name) == "byte_level"
                              ? tokenizer->token_to_id("ÿ").value()
                              : tokenizer->token_to_id("<0xFF>").value();
    const int32_t a = tokenizer->token_to_id("a").value();
    Ids ids(20000, wrong);
    ids.push_back(a);
    Detokenizer detokenizer(*tokenizer, {});
    std::string text;
    size_t longest = 0;
    for (const int32_t id : ids) {
      const std::string piece = detokenizer.append(id).value();
      longest = std::max(longest, piece.size());
      text += piece;
    }
    std::string expected;
    for (int i = 0; i < 20000; ++i) expected += mark;
    EXPECT_EQ(text, expected + "a");
    EXPECT_LE(longest, 4 * mark.size());
  }
}

TEST(Detokenizer, IdsOutsideTheVocabulary) {
  auto tokenizer = load_fixture(data_folder("byte_level"));
  Detokenizer detokenizer(*tokenizer, {});
  EXPECT_EQ(detokenizer.append(1 << 20).value(), "");
  auto piece = detokenizer.append(-1);
  ASSERT_FALSE(piece.ok());
  EXPECT_EQ(piece.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretoken
