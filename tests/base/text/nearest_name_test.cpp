#include "base/text/nearest_name.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

const std::vector<std::string> kKnown = {"temperature", "top_p", "top_k", "max_tokens", "n"};

TEST(NearestName, NearestIsTheOneWithFewestEdits) {
  EXPECT_EQ(nearest_name("temprature", kKnown), "temperature");
  EXPECT_EQ(nearest_name("tempreature", kKnown), "temperature");
  EXPECT_EQ(nearest_name("topp", kKnown), "top_p");
  EXPECT_EQ(nearest_name("topk", kKnown), "top_k");
  EXPECT_EQ(nearest_name("max_token", kKnown), "max_tokens");
}

TEST(NearestName, NothingIsNear) {
  EXPECT_EQ(nearest_name("quantization", kKnown), "");
  EXPECT_EQ(nearest_name("", {}), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), kKnown), "");
}

TEST(NearestName, EditsMayBeLimited) {
  EXPECT_EQ(nearest_name("temprture", kKnown, 2), "temperature");
  EXPECT_EQ(nearest_name("temprture", kKnown, 1), "");
}

TEST(NearestName, SwappedNeighboursCountOnce) {
  EXPECT_EQ(nearest_name("ot_p", {"to_p", "ox_y"}), "to_p");
}

TEST(NearestName, Hint) {
  EXPECT_EQ(nearest_name_hint("topp", kKnown, ""), "; did you mean 'top_p'?");
  EXPECT_EQ(nearest_name_hint("quantization", kKnown, "; remove it"), "; remove it");
}

}  // namespace
}  // namespace foretoken
