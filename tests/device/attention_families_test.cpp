#include "device/attention_families.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/claimed_device.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

TEST(AttentionFamilies, EveryDeviceHasThePortableOnes) {
  for (const AttentionFamily family : {AttentionFamily::kPortable, AttentionFamily::kFlex}) {
    EXPECT_TRUE(has_attention(*test_device(), family));
    EXPECT_TRUE(has_attention(test::ClaimedDevice(DeviceType::kCpu, false), family));
  }
}

TEST(AttentionFamilies, ADeviceSaysWhichOthersItHas) {
  EXPECT_TRUE(has_attention(test::ClaimedDevice(DeviceType::kCuda, true), AttentionFamily::kFlash));
  EXPECT_FALSE(
      has_attention(test::ClaimedDevice(DeviceType::kCuda, false), AttentionFamily::kFlash));
  if (test_device()->type() == DeviceType::kCpu) {
    EXPECT_FALSE(has_attention(*test_device(), AttentionFamily::kFlash));
  }
}

TEST(AttentionFamilies, NamesDiffer) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(AttentionFamily::kCutlassMla); ++i) {
    names.insert(attention_family_name(static_cast<AttentionFamily>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(AttentionFamily::kCutlassMla) + 1);
  EXPECT_EQ(names.count(""), 0u);
}

}  // namespace
}  // namespace foretoken
