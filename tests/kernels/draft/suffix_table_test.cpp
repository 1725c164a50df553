#include "kernels/draft/suffix_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken::suffix_table {
namespace {

// A table in the memory of the test.
struct OwnTable {
  explicit OwnTable(uint32_t num_buckets, uint32_t max_age = 100)
      : entries(size_t{num_buckets} * kWays), table{entries.data(), &clock, num_buckets, max_age} {}

  void learn_at(const Key& key, int32_t id, uint32_t now) { learn(table, key, id, now); }
  // What it tells of a key; null: nothing.
  const Entry* find(const Key& key, uint32_t now) const {
    for (int way = 0; way < kWays; ++way) {
      const Entry& entry = entries[size_t{key.bucket} * kWays + static_cast<size_t>(way)];
      if (holds(table, entry, key, now)) return &entry;
    }
    return nullptr;
  }

  std::vector<Entry> entries;
  uint32_t clock = 0;
  Table table;
};

SlotParams owner(uint64_t salt, int32_t adapter = 0) {
  SlotParams params{};
  params.cache_salt = salt;
  params.adapter_number = adapter;
  return params;
}

Key key_of_ids(const OwnTable& own, const SlotParams& params, const std::vector<int32_t>& ids) {
  return key_of(own.table, params, static_cast<int32_t>(ids.size()),
                [&](int32_t i) { return ids[ids.size() - 1 - static_cast<size_t>(i)]; });
}

TEST(SuffixTable, LevelsAreHalves) {
  const auto levels = [](int32_t depth) {
    std::vector<int32_t> all;
    for (int level = 0; level < kNumLevels; ++level) all.push_back(level_tokens(depth, level));
    return all;
  };
  EXPECT_EQ(levels(24), (std::vector<int32_t>{24, 12, 6, 3}));
  EXPECT_EQ(levels(7), (std::vector<int32_t>{7, 3, 0, 0}));
  EXPECT_EQ(levels(1), (std::vector<int32_t>{1, 0, 0, 0}));
  EXPECT_EQ(least_tokens(24), 3);
  EXPECT_EQ(least_tokens(7), 3);
  EXPECT_EQ(least_tokens(1), 1);
}

TEST(SuffixTable, TheLikelierTokenGoesFirstAndTheLaterOneOfTwoEquals) {
  OwnTable own(4);
  const Key key = key_of_ids(own, owner(0), {1, 2, 3});
  EXPECT_EQ(own.find(key, 1), nullptr);
  own.learn_at(key, 7, 1);
  ASSERT_NE(own.find(key, 1), nullptr);
  EXPECT_EQ(own.find(key, 1)->ids[0], 7);
  EXPECT_EQ(own.find(key, 1)->rates[0], 65535);
  own.learn_at(key, 8, 1);
  EXPECT_EQ(own.find(key, 1)->ids[0], 8) << "one each, and it came later";
  EXPECT_NEAR(own.find(key, 1)->rates[0], 32767, 2);
  own.learn_at(key, 7, 2);
  EXPECT_EQ(own.find(key, 2)->ids[0], 7);
  EXPECT_NEAR(own.find(key, 2)->rates[0], 65535 * 2 / 3, 3);
  for (int i = 0; i < 40; ++i) own.learn_at(key, 8, 2);
  EXPECT_EQ(own.find(key, 2)->ids[0], 8);
  EXPECT_GT(own.find(key, 2)->rates[0], 65000) << "what was long ago counts little";
}

TEST(SuffixTable, FewOccurrencesOfShortPiecesCountForLess) {
  Entry once{};
  once.ids[0] = 5;
  once.ids[1] = -1;
  note(once, 5, 1);
  Entry often = once;
  for (int i = 0; i < 20; ++i) note(often, 5, 1);
  EXPECT_LT(chance_of(once, 3), chance_of(once, 24));
  EXPECT_LT(chance_of(once, 3), chance_of(often, 3));
  EXPECT_EQ(chance_of(once, 3), 65535 * 3 / 4);
  EXPECT_EQ(chance_of(often, 64), 65535 * 512 / 513);
}

TEST(SuffixTable, AnOwnerSeesItsOwnTextsAlone) {
  OwnTable own(1);  // one bucket: nothing but the comparison tells entries apart
  const std::vector<int32_t> ids = {4, 5, 6};
  const std::vector<SlotParams> owners = {owner(0), owner(11), owner(13), owner(11, 2)};
  for (size_t i = 0; i < owners.size(); ++i) {
    own.learn_at(key_of_ids(own, owners[i], ids), static_cast<int32_t>(i) + 20, 1);
  }
  for (size_t i = 0; i < owners.size(); ++i) {
    const Entry* entry = own.find(key_of_ids(own, owners[i], ids), 1);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->ids[0], static_cast<int32_t>(i) + 20);
  }
  EXPECT_EQ(own.find(key_of_ids(own, owner(17), ids), 1), nullptr);
}

TEST(SuffixTable, EqualHashesOfTwoOwnersAreTwoEntries) {
  OwnTable own(1);
  Key mine = key_of_ids(own, owner(11), {1, 2});
  own.learn_at(mine, 9, 1);
  Key other = mine;
  other.salt = 13;
  EXPECT_EQ(own.find(other, 1), nullptr);
  other = mine;
  other.adapter = 1;
  EXPECT_EQ(own.find(other, 1), nullptr);
  own.learn_at(other, 10, 1);
  EXPECT_EQ(own.find(mine, 1)->ids[0], 9);
  EXPECT_EQ(own.find(other, 1)->ids[0], 10);
}

TEST(SuffixTable, TheOldestEntryOfAFullBucketGoes) {
  OwnTable own(1);
  std::vector<Key> keys;
  for (int32_t i = 0; i < 6; ++i) keys.push_back(key_of_ids(own, owner(0), {i, i + 1}));
  for (uint32_t i = 0; i < 4; ++i) own.learn_at(keys[i], 1, i + 1);
  own.learn_at(keys[0], 1, 5);
  own.learn_at(keys[4], 1, 5);
  EXPECT_EQ(own.find(keys[1], 5), nullptr);
  own.learn_at(keys[5], 1, 6);
  EXPECT_EQ(own.find(keys[2], 6), nullptr);
  for (const size_t kept : {0, 3, 4, 5}) EXPECT_NE(own.find(keys[kept], 6), nullptr) << kept;
}

TEST(SuffixTable, AnswersOfLongAgoAreForgotten) {
  OwnTable own(2, 10);
  const Key key = key_of_ids(own, owner(0), {1, 2});
  own.learn_at(key, 5, 1);
  EXPECT_NE(own.find(key, 11), nullptr);
  EXPECT_EQ(own.find(key, 12), nullptr);
  own.learn_at(key, 6, 12);
  EXPECT_EQ(own.find(key, 12)->ids[0], 6);
  EXPECT_EQ(own.find(key, 12)->rates[0], 65535) << "it began anew";
  own.learn_at(key, 6, kClockMask);
  EXPECT_NE(own.find(key, kClockMask + 5), nullptr) << "the clock may turn over";
}

TEST(SuffixTable, DraftsByTheLengthOfTheSuffix) {
  EXPECT_EQ(max_draft_tokens(6, 1.0f, 16), 6);
  EXPECT_EQ(max_draft_tokens(6, 4.0f, 16), 16);
  EXPECT_EQ(max_draft_tokens(6, 0.5f, 16), 3);
  EXPECT_EQ(max_draft_tokens(6, 0.0f, 16), 0);
  EXPECT_EQ(max_draft_tokens(64, 1000.0f, 16), 16);
}

}  // namespace
}  // namespace foretoken::suffix_table
