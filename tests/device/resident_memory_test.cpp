#include "device/resident_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

TEST(ResidentMemory, GrowsByWhatIsWritten) {
  constexpr size_t kBytes = size_t{32} << 20;
  const int64_t before = resident_bytes();
  const std::vector<char> written(kBytes, 1);
  EXPECT_GE(resident_bytes() - before, static_cast<int64_t>(kBytes / 2)) << written.back();
}

}  // namespace
}  // namespace foretoken
