#include "draft/parts/tap_pages.h"

#include <gtest/gtest.h>

#include "model/registry.h"
#include "support/dialled_set.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class TapPagesTest : public DeviceTest {};

TEST_F(TapPagesTest, TheTargetKeepsTheLayersFromThenOn) {
  LoadOptions options;
  options.max_rows = 4;
  options.max_logits_rows = 4;
  options.max_model_len = 64;
  auto target = load_model(device(), test::DialledSet::of().target("eagle"), options);
  ASSERT_TRUE(target.ok()) << target.status().message();
  TapPages taps(device(), *target.value(), {1, TapSink::kFinalNorm});
  const ModelConfig& config = target.value()->config();
  const int64_t row = 2 * config.hidden_size * static_cast<int64_t>(dtype_size(config.dtype));
  EXPECT_EQ(taps.bytes_per_block(16), 16 * row);
  EXPECT_EQ(taps.source().rows, nullptr);
  ASSERT_TRUE(taps.take(4, 16).ok());
  EXPECT_NE(taps.source().rows, nullptr);
  EXPECT_TRUE(taps.source().tapped);
  EXPECT_FALSE(taps.are_parts());
  EXPECT_EQ(target.value()->tapped_layers(), std::vector<int32_t>{1});
}

}  // namespace
}  // namespace foretoken
