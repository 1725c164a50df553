#include "model/heads/chain_head.h"

#include <gtest/gtest.h>

#include <cstring>

#include "model/forward_harness.h"
#include "model/golden.h"

namespace foretoken::test {
namespace {

TEST(TapReader, TakesTheStateOfEachRow) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  constexpr int32_t kRows = 3, kHidden = 32;
  const auto target = load_test_model(golden_folder() + "architectures/llama", {"float32", ""}, 8);
  Arena pinned(model_device(), MemoryKind::kPinned);
  auto* pages = pinned.take_array<float>(6 * kHidden, "pages").value();
  auto* out = pinned.take_array<float>(kRows * kHidden, "out").value();
  for (int32_t i = 0; i < 6 * kHidden; ++i) pages[i] = static_cast<float>(i);
  DraftTensors tensors{};
  tensors.rows.counts = pinned.take_array<StepCounts>(1, "counts").value();
  tensors.source = pinned.take_array<int32_t>(kRows, "source").value();
  *tensors.rows.counts = {2, 2, 0, 0};
  tensors.source[0] = 5;
  tensors.source[1] = 1;
  TapReader reader(*target, {});
  Arena scratch(model_device(), MemoryKind::kDevice);
  ASSERT_TRUE(reader.take_scratch(scratch, kRows).ok());
  EXPECT_EQ(scratch.bytes_taken(), 0u) << "only parts of several ranks need memory";
  const auto queue = model_device().make_queue().value();
  reader.read(*queue, tensors, {.rows = pages, .dtype = DType::kF32, .tapped = true}, kRows, out,
              DType::kF32);
  ASSERT_TRUE(queue->drain().ok());
  EXPECT_EQ(std::memcmp(out, pages + 5 * kHidden, kHidden * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(out + kHidden, pages + kHidden, kHidden * sizeof(float)), 0);
  EXPECT_EQ(out[2 * kHidden], 0.0f) << "no live row";
}

}  // namespace
}  // namespace foretoken::test
