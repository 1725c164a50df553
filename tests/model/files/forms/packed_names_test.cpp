#include "model/files/forms/packed_names.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(PackedNames, PartsOfAMatrix) {
  const TensorView view;
  std::map<std::string, const TensorView*> tensors = {{"a.qweight", &view}, {"a.scales", &view},
                                                      {"a.qzeros", &view},  {"a.g_idx", &view},
                                                      {"a.bias", &view},    {"b.weight", &view}};
  EXPECT_TRUE(has_packed(tensors));
  const auto found = find_packed(tensors, PackLayout::kGptq);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found.value().size(), 1u);
  EXPECT_EQ(found.value()[0].base, "a");
  EXPECT_EQ(found.value()[0].names.size(), 4u);
  const auto other = find_packed(tensors, PackLayout::kCompressed);
  EXPECT_NE(other.status().message().find("of another layout"), std::string::npos);
  tensors.erase("a.qzeros");
  EXPECT_NE(find_packed(tensors, PackLayout::kAwq).status().message().find("'a' lacks its"),
            std::string::npos);
  EXPECT_FALSE(has_packed({{"b.weight", &view}}));
}

}  // namespace
}  // namespace foretoken
