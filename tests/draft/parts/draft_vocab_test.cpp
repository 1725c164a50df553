#include "draft/parts/draft_vocab.h"

#include <gtest/gtest.h>

#include <string>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class DraftVocab : public testing::Test {
 protected:
  std::string file(const std::string& content) const { return folder_.write("ids", content); }
  static SpeculativeConfig config(int size, const std::string& path = "") {
    SpeculativeConfig made;
    made.draft_vocab_size = size;
    made.draft_vocab_file = path;
    return made;
  }
  using Ids = std::vector<int32_t>;
  static Ids choose(const SpeculativeConfig& wanted, const Ids& eos = {}) {
    const auto ids = choose_draft_vocab(wanted, 20, eos);
    EXPECT_TRUE(ids.ok()) << ids.status().message();
    return ids.ok() ? ids.value() : Ids{};
  }
  static void expect_refused(const SpeculativeConfig& wanted, const std::string& part) {
    const auto ids = choose_draft_vocab(wanted, 20, {});
    ASSERT_FALSE(ids.ok());
    EXPECT_NE(ids.status().message().find(part), std::string::npos) << ids.status().message();
    EXPECT_EQ(ids.status().message().find('\n'), std::string::npos);
  }

 private:
  const test::ScratchFolder folder_;
};

TEST_F(DraftVocab, NothingAskedIsEverything) { EXPECT_EQ(choose(config(0)), Ids{}); }

TEST_F(DraftVocab, WithoutAFileTheLowestIds) {
  EXPECT_EQ(choose(config(4)), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(choose(config(1)), Ids{0});
  EXPECT_EQ(choose(config(20)).size(), 20u);
}

TEST_F(DraftVocab, TheBestOfTheFileAscending) {
  for (const char* text : {"[9, 3, 17, 3, 0, 5]", "9 3 17\n3\t0 5", "9\n3\n17\n0\n5\n"}) {
    EXPECT_EQ(choose(config(3, file(text))), (Ids{3, 9, 17})) << text;
    EXPECT_EQ(choose(config(0, file(text))), (Ids{0, 3, 5, 9, 17})) << text;
  }
}

TEST_F(DraftVocab, EosIsKept) {
  EXPECT_EQ(choose(config(4), {12}), (Ids{0, 1, 2, 12}));
  EXPECT_EQ(choose(config(4), {2, 19}), (Ids{0, 1, 2, 19}));
  EXPECT_EQ(choose(config(2), {18, 19}), (Ids{18, 19}));
  EXPECT_EQ(choose(config(3, file("9 3 17")), {17}), (Ids{3, 9, 17}));
  // More of them than there is room for, or outside the vocabulary.
  EXPECT_EQ(choose(config(1), {18, 19}).size(), 1u);
  EXPECT_EQ(choose(config(2), {25, -1}), (Ids{0, 1}));
}

TEST_F(DraftVocab, WrongSizesAndFilesAreNamed) {
  expect_refused(config(-1), "draft_vocab_size is -1");
  expect_refused(config(21), "from 1 to the target's vocabulary of 20");
  expect_refused(config(2, "/nowhere/ids"), "/nowhere/ids");
  expect_refused(config(4, file("1 2 3 2")), "only 3 different ids");
  expect_refused(config(1, file("1 20")), "id 20");
  expect_refused(config(1, file("[1, -2]")), "id -2");
  expect_refused(config(1, file("[5000000000]")), "id 5000000000");
  for (const char* text : {"", "[]", "one two", "1 2 x", "[1, 2.5]", "{\"a\": 1}", "[1, 2"}) {
    expect_refused(config(1, file(text)), "must hold token ids");
  }
}

}  // namespace
}  // namespace foretoken
