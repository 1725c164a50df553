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

}  // namespace
}  // namespace foretoken
