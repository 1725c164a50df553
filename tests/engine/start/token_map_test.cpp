#include "engine/start/token_map.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "dialled/dialled_fill.h"
#include "support/folders.h"
#include "support/scratch_folder.h"
#include "text/text_fixtures.h"

namespace foretoken {
namespace {

std::unique_ptr<Tokenizer> family(const std::string& name) {
  return load_fixture(data_folder("tokenizers") / name);
}

Vocabulary whole(const Tokenizer& tokenizer) { return {tokenizer, tokenizer.vocab_size()}; }

std::string message(const Result<TokenMap>& map) {
  return map.ok() ? "(made, " + std::to_string(map.value().share) + ")" : map.status().message();
}

// Text that a SentencePiece tokenizer and a byte-level one spell in different ways: a few words and
// all bytes. `bytes` fallback tokens "<0x0A>" or letters of the byte alphabet.
std::unique_ptr<Tokenizer> words(const test::ScratchFolder& folder, bool sentencepiece,
                                 const std::vector<std::string>& list) {
  std::string vocab = R"("<unk>": 0, "</s>": 1)";
  int id = 2;
  for (const std::string& word : list) {
    vocab += ", \"" + std::string(sentencepiece ? "\u2581" : "\u0120") + word +
             "\": " + std::to_string(id++);
  }
  if (sentencepiece) vocab += ", \"<0x0A>\": " + std::to_string(id++);
  if (!sentencepiece) vocab += ", \"\u010a\": " + std::to_string(id++);
  const std::string decoder =
      sentencepiece ? R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern":
            {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]})"
                    : R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
            "use_regex": false})";
  folder.write("tokenizer.json",
               R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
      {"id": 0, "content": "<unk>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 1, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true}], "normalizer": null, "pre_tokenizer": null,
      "post_processor": null, "decoder": )" +
                   decoder + R"(, "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>",
      "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false,
      "byte_fallback": )" +
                   (sentencepiece ? "true" : "false") + R"(, "vocab": {)" + vocab +
                   R"(}, "merges": []}})");
  folder.write("tokenizer_config.json", R"({"eos_token": "</s>", "unk_token": "<unk>"})");
  return load_fixture(folder.path());
}

TEST(TokenMap, TheSameVocabularyNeedsNone) {
  for (const char* name :
       {"deepseek", "gemma", "gpt2", "llama2", "llama3", "qwen2", "unigram", "wordpiece"}) {
    const auto a = family(name), b = family(name);
    for (const bool heterogeneous : {false, true}) {
      const auto map = map_tokens(whole(*a), whole(*b), heterogeneous);
      ASSERT_TRUE(map.ok()) << message(map);
      EXPECT_TRUE(map.value().to_draft.empty() && map.value().to_target.empty());
      EXPECT_EQ(map.value().share, 1);
    }
    // Padded logits of either model change nothing.
    EXPECT_TRUE(map_tokens({*a, a->vocab_size() + 64}, whole(*b), false).value().to_draft.empty());
  }
}

TEST(TokenMap, AnotherTokenizerHasToBeAskedFor) {
  const auto a = family("llama3"), b = family("llama2");
  const auto map = map_tokens(whole(*a), whole(*b), false);
  EXPECT_EQ(map.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(message(map).find("use_heterogeneous_vocab"), std::string::npos) << message(map);
  EXPECT_EQ(message(map).find('\n'), std::string::npos);
}

// Any two families: either half of the smaller vocabulary is common and every token is sound, or
// the error gives the share.
TEST(TokenMap, EveryPairOfFamilies) {
  int made = 0, refused = 0;
  const char* const names[] = {"deepseek", "gemma", "gpt2",    "llama2",
                               "llama3",   "qwen2", "unigram", "wordpiece"};
  for (const char* first : names) {
    for (const char* second : names) {
      if (first == second) continue;
      SCOPED_TRACE(std::string(first) + " and " + second);
      const auto target = family(first), draft = family(second);
      const auto map = map_tokens(whole(*target), whole(*draft), true);
      if (!map.ok()) {
        ++refused;
        EXPECT_NE(message(map).find(" %"), std::string::npos) << message(map);
        EXPECT_NE(message(map).find("less than 50 %"), std::string::npos);
        continue;
      }
      ++made;
      EXPECT_GE(map.value().share, 0.5);
      ASSERT_EQ(static_cast<int32_t>(map.value().to_draft.size()), target->vocab_size());
      ASSERT_EQ(static_cast<int32_t>(map.value().to_target.size()), draft->vocab_size());
      std::vector<int> uses(map.value().to_draft.size());
      for (int32_t id = 0; id < draft->vocab_size(); ++id) {
        const int32_t there = map.value().to_target[static_cast<size_t>(id)];
        if (there < 0) continue;
        EXPECT_EQ(++uses.at(static_cast<size_t>(there)), 1);
        const int32_t back = map.value().to_draft[static_cast<size_t>(there)];
        if (target->is_special(there)) continue;
        EXPECT_EQ(back, id);
        EXPECT_EQ(target->token_bytes(there), draft->token_bytes(id));
      }
      for (const int32_t id : map.value().to_draft) {
        EXPECT_TRUE(id >= 0 && id < draft->vocab_size());
      }
    }
  }
  EXPECT_GT(made, 5);
  EXPECT_GT(refused, 5);
}

TEST(TokenMap, SpellingsOfSpacesAndBytesAreEqual) {
  const test::ScratchFolder a, b;
  const auto target = words(a, false, {"the", "cat", "sat", "on", "a"});
  const auto draft = words(b, true, {"a", "mat", "the", "sat", "on"});
  const TokenMap map = map_tokens(whole(*target), whole(*draft), true).value();
  // <unk>, </s>, "the", "cat", "sat", "on", "a", line break; "cat" has a stand-in.
  EXPECT_EQ(map.to_target, (std::vector<int32_t>{0, 1, 6, -1, 2, 4, 5, 7}));
  for (const int32_t id : {0, 1, 2, 4, 5, 6, 7}) {
    EXPECT_EQ(map.to_target[static_cast<size_t>(map.to_draft[static_cast<size_t>(id)])], id);
  }
  EXPECT_DOUBLE_EQ(map.share, 7.0 / 8);
}

TEST(TokenMap, LessThanHalfIsRefusedWithTheShare) {
  const test::ScratchFolder a, b;
  const auto target = words(a, false, {"p", "q", "r", "s", "t", "u", "v", "w"});
  const auto draft = words(b, true, {"1", "2", "3", "4", "5", "6", "w", "v"});
  const auto map = map_tokens(whole(*target), whole(*draft), true);
  // Five of eleven: the two words, the special tokens and the line break.
  EXPECT_EQ(map.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(message(map).find("45 %"), std::string::npos) << message(map);
}

// A wider target than its tokenizer reads as something, and is never proposed.
TEST(TokenMap, PaddedVocabularies) {
  const test::ScratchFolder a, b;
  const auto target = words(a, false, {"the", "cat"});
  const auto draft = words(b, true, {"cat", "the"});
  const TokenMap map = map_tokens({*target, 16}, {*draft, 9}, true).value();
  EXPECT_EQ(map.to_draft.size(), 16u);
  EXPECT_EQ(map.to_target, (std::vector<int32_t>{0, 1, 3, 2, 4, -1, -1, -1, -1}));
}

TEST(TokenMap, DialledDraftsWithShiftedIds) {
  const test::ScratchFolder a, b;
  DialledShape shape;
  shape.vocab_size = 100;
  ASSERT_TRUE(write_dialled_checkpoint(a.path(), shape).ok());
  shape.id_shift = 33;
  ASSERT_TRUE(write_dialled_checkpoint(b.path(), shape).ok());
  const auto target = load_fixture(a.path()), draft = load_fixture(b.path());
  EXPECT_FALSE(map_tokens(whole(*target), whole(*draft), false).ok());
  const TokenMap map = map_tokens(whole(*target), whole(*draft), true).value();
  EXPECT_EQ(map.share, 1);
  for (int32_t id = 2; id < 100; ++id) {
    EXPECT_EQ(map.to_target[static_cast<size_t>(id)], dialled_word(shape, id));
    EXPECT_EQ(map.to_draft[static_cast<size_t>(id)], dialled_id(shape, id));
  }
  const auto ids = draft->encode(" t7 t99", false);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids.value(), (std::vector<int32_t>{dialled_id(shape, 7), dialled_id(shape, 99)}));
}

TEST(TokenMap, BundledModelsAreOneFamily) {
  const std::filesystem::path models = std::filesystem::path(foretoken::kSourceFolder) / "models";
  const auto target = load_fixture(models / "foretoken-7m");
  if (!std::filesystem::exists(models / "foretoken-7m-draft" / "tokenizer.json")) {
    GTEST_SKIP() << "no bundled draft model";
  }
  const auto draft = load_fixture(models / "foretoken-7m-draft");
  EXPECT_TRUE(map_tokens(whole(*target), whole(*draft), false).value().to_draft.empty());
}

}  // namespace
}  // namespace foretoken
