#include "model/layer/recurrent/linear_parts.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

constexpr Sharding kSecondOfTwo = {.rank = 1, .size = 2};

LinearSpec spec_of(LinearFiles files) {
  return {.shape = {.key_heads = 2, .value_heads = 4, .key_dim = 3, .value_dim = 5},
          .inputs = 8,
          .conv_width = 4,
          .files = files};
}

// What parts cover: the first row and how many, by tensor.
std::string text_of(const std::vector<TensorPart>& parts) {
  std::string text;
  for (const TensorPart& part : parts) {
    text += (text.empty() ? "" : " ") + part.name + "/" + std::to_string(part.rows) + ":" +
            std::to_string(part.first_row) + "+" + std::to_string(part.wanted());
  }
  return text;
}

TEST(LinearParts, SecondRanksRowsOfTheFirstProduct) {
  const auto first = [](LinearFiles files) {
    return text_of(first_parts("", spec_of(files), kSecondOfTwo));
  };
  EXPECT_EQ(first(LinearFiles::kApart),
            "in_proj_qkv/32:3+3 in_proj_qkv/32:9+3 in_proj_qkv/32:22+10 in_proj_z/20:10+10");
  EXPECT_EQ(first(LinearFiles::kEach),
            "q_proj/6:3+3 k_proj/6:3+3 v_proj/20:10+10 in_proj_z/20:10+10");
  EXPECT_EQ(first(LinearFiles::kByGroup),
            "in_proj_qkv/52:26+3 in_proj_qkv/52:29+3 in_proj_qkv/52:32+10 in_proj_qkv/52:42+10");
  EXPECT_EQ(first(LinearFiles::kStep),
            "in_proj_qkv/56:49+3 in_proj_qkv/56:43+3 in_proj_qkv/56:30+10 in_proj_qkv/56:10+10");
}

TEST(LinearParts, DecaysAndScales) {
  const auto steps = [](LinearFiles files) {
    return text_of(step_parts("", spec_of(files), kSecondOfTwo));
  };
  EXPECT_EQ(steps(LinearFiles::kApart), "in_proj_a/4:2+2 in_proj_b/4:2+2");
  EXPECT_EQ(steps(LinearFiles::kByGroup), "in_proj_a/8:6+2 in_proj_a/8:4+2");
  EXPECT_EQ(steps(LinearFiles::kStep), "in_proj_qkv/56:54+2");
}

TEST(LinearParts, ChannelsOfConvolutions) {
  EXPECT_EQ(text_of(conv_parts("c", spec_of(LinearFiles::kApart), kSecondOfTwo, 4, true)),
            "c/128:12+12 c/128:36+12 c/128:88+40");
  EXPECT_EQ(text_of(conv_parts("c", spec_of(LinearFiles::kStep), kSecondOfTwo, 1, false)),
            "c/32:29+3 c/32:23+3 c/32:10+10");
  EXPECT_EQ(text_of(apart_conv_parts("", spec_of(LinearFiles::kEach), kSecondOfTwo, true)),
            "q_conv1d.weight/24:12+12 k_conv1d.weight/24:12+12 v_conv1d.weight/80:40+40");
}

// Heads of values of six, three for each of two keys: 0 1 0 1 0 1, by their keys.
LinearSpec turning_spec() {
  LinearSpec spec = spec_of(LinearFiles::kApart);
  spec.shape.value_heads = 6;
  spec.shape.tiled = true;
  return spec;
}

std::string text_of(const ColumnRange& columns) {
  std::string text = "/" + std::to_string(columns.total) + ":";
  for (int64_t column = 0; column < columns.count; column += columns.width()) {
    text += " " + std::to_string(columns.source_of(column)) + "+" + std::to_string(columns.width());
  }
  return text;
}

TEST(LinearParts, HeadsThatTakeTurnsAreThoseOfTheRanksKeys) {
  const LinearSpec spec = turning_spec();
  EXPECT_EQ(text_of(first_parts("", spec, kSecondOfTwo)),
            "in_proj_qkv/42:3+3 in_proj_qkv/42:9+3 in_proj_qkv/42:17+5 in_proj_qkv/42:27+5 "
            "in_proj_qkv/42:37+5 in_proj_z/30:5+5 in_proj_z/30:15+5 in_proj_z/30:25+5");
  EXPECT_EQ(text_of(step_parts("", spec, kSecondOfTwo)),
            "in_proj_a/6:1+1 in_proj_a/6:3+1 in_proj_a/6:5+1 in_proj_b/6:1+1 in_proj_b/6:3+1 "
            "in_proj_b/6:5+1");
  EXPECT_EQ(text_of(conv_parts("c", spec, kSecondOfTwo, 4, false)),
            "c/168:12+12 c/168:36+12 c/168:68+20 c/168:108+20 c/168:148+20");
  EXPECT_EQ(text_of(value_columns(spec, kSecondOfTwo)), "/30: 5+5 15+5 25+5");
  EXPECT_EQ(values_of_rank({0, 1, 2, 3, 4, 5}, spec, kSecondOfTwo), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(text_of(value_columns(spec, {})), "/30: 0+30");
}

// Six ranks share two keys, and have a head of values each.
TEST(LinearParts, RanksThatHaveAKeyDivideItsHeads) {
  LinearSpec spec = turning_spec();
  std::vector<float> seen;
  for (int rank = 0; rank < 6; ++rank) {
    const std::vector<float> own =
        values_of_rank({0, 1, 2, 3, 4, 5}, spec, {.rank = rank, .size = 6});
    ASSERT_EQ(own.size(), 1u);
    EXPECT_EQ(static_cast<int>(own[0]) % 2, rank / 3) << "its key";
    seen.push_back(own[0]);
  }
  EXPECT_EQ(seen, (std::vector<float>{0, 2, 4, 1, 3, 5}));
  spec.shape.value_heads = 8;
  EXPECT_EQ(text_of(value_columns(spec, {.rank = 3, .size = 4})), "/40: 25+5 35+5");
  spec.shape.key_heads = 4;
  EXPECT_EQ(text_of(value_columns(spec, kSecondOfTwo)), "/40: 10+10 30+10");
}

// What adapters find their rows by.
TEST(LinearParts, RowsOfHeadsThatTakeTurnsInAFolder) {
  const TurningHeads turning = turning_of(turning_spec(), 12, 5);
  EXPECT_EQ(turning.of_folder(7), 7) << "a key's";
  EXPECT_EQ(turning.of_folder(12), 12);
  EXPECT_EQ(turning.of_folder(17 + 2), 12 + 3 * 5 + 2) << "the first of the second key";
  EXPECT_EQ(turning.of_folder(22), 12 + 5);
  EXPECT_EQ(turning_of(spec_of(LinearFiles::kApart), 12, 5).of_folder(19), 19);
}

}  // namespace
}  // namespace foretoken
