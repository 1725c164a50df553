#include "net/headers.h"

#include <gtest/gtest.h>

namespace foretoken::net {
namespace {

TEST(Headers, AreFoundByNameWithoutCase) {
  const Headers headers = {{"Content-Type", "text/plain"}, {"X-A", "1"}, {"x-a", "2"}};
  EXPECT_EQ(header_of(headers, "content-type"), "text/plain");
  EXPECT_EQ(header_of(headers, "X-a"), "1") << "the first";
  EXPECT_EQ(header_of(headers, "x-"), "");
  EXPECT_EQ(header_of({}, "x-a"), "");
}

}  // namespace
}  // namespace foretoken::net
