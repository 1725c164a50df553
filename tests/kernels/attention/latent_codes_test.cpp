#include "kernels/attention/cpu/latent_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/latent_data.h"

namespace foretoken::cpu {
namespace {

KvLayer latents_of(KvFormat format, DType dtype, int32_t head_dim, int32_t value_dim) {
  return {nullptr, nullptr, 1, 16, head_dim, dtype, format, value_dim};
}

// All elements of an entry, as floats.
std::vector<float> widened(const KvLayer& kv, const std::vector<uint8_t>& entry) {
  const auto* bytes = reinterpret_cast<const std::byte*>(entry.data());
  const auto count = static_cast<size_t>(kv.head_dim);
  std::vector<float> floats(count);
  if (kv.dtype == DType::kF32) {
    widen_entry(kv, bytes, kv.head_dim, floats.data());
    return floats;
  }
  std::vector<uint16_t> halves(count);
  widen_entry(kv, bytes, kv.head_dim, halves.data());
  for (size_t i = 0; i < count; ++i) floats[i] = bf16_to_float(halves[i]);
  return floats;
}

TEST(LatentCodes, ComeBackAsTheyWereRounded) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const KvLayer kv = latents_of(KvFormat::kFp8, dtype, 364, 300);
    const std::vector<float> x = random_floats(364, 5, 3.0f);
    const TypedData want = latent_data(x, kv);
    std::vector<uint8_t> entry = want.bytes;
    std::fill_n(entry.begin(), latent_plain_at(300), uint8_t{0x5a});
    store_latents(KvFormat::kFp8, x.data(), 300, entry.data());
    EXPECT_EQ(entry, want.bytes);
    EXPECT_EQ(widened(kv, entry), want.values);
  }
}

// The data of tests, and what is stored: each within half a step of its group.
TEST(LatentCodes, IntegersAreWithinHalfAStep) {
  const KvLayer kv = latents_of(KvFormat::kInt8, DType::kF32, 364, 300);
  std::vector<float> x = random_floats(364, 5, 3.0f);
  for (size_t i = 128; i < 256; ++i) x[i] *= 1000;
  const TypedData data = latent_data(x, kv);
  std::vector<uint8_t> entry = data.bytes;
  EXPECT_EQ(widened(kv, entry), data.values);
  std::fill_n(entry.begin(), latent_plain_at(300), uint8_t{0x5a});
  store_latents(KvFormat::kInt8, x.data(), 300, entry.data());
  const std::vector<float> got = widened(kv, entry);
  for (size_t i = 0; i < 300; ++i) {
    const size_t first = i / 128 * 128, end = std::min<size_t>(first + 128, 300);
    float highest = 0;
    for (size_t j = first; j < end; ++j) highest = std::max(highest, std::abs(x[j]));
    EXPECT_NEAR(got[i], x[i], highest / 127 * 0.50001f) << i;
  }
  for (size_t i = 300; i < 364; ++i) EXPECT_EQ(got[i], x[i]) << i;
}

TEST(LatentCodes, WhereAVectorEndsChangesNothing) {
  std::vector<int8_t> codes;
  for (int code = -128; code < 128; ++code) codes.push_back(static_cast<int8_t>(code));
  std::vector<uint16_t> whole(256), parts(256);
  widen_int8_codes(codes.data(), 256, 0.37f, whole.data());
  for (int i = 0; i < 256; i += 5) {
    widen_int8_codes(codes.data() + i, std::min(5, 256 - i), 0.37f, parts.data() + i);
  }
  EXPECT_EQ(whole, parts);
}

// The largest of a group has the largest code; other groups do not matter.
TEST(LatentCodes, AGroupHasItsOwnScale) {
  for (const KvFormat format : {KvFormat::kFp8, KvFormat::kInt8}) {
    const uint8_t lowest = format == KvFormat::kFp8 ? 0xfe : 0x81;
    std::vector<float> x(256, 1.0f);
    x[5] = -7.0f;
    std::fill(x.begin() + 128, x.end(), 1e-35f);
    std::vector<uint8_t> entry(static_cast<size_t>(latent_plain_at(256)));
    store_latents(format, x.data(), 256, entry.data());
    EXPECT_EQ(entry[5], lowest);
    EXPECT_EQ(entry[200], 0) << "what no scale can be found for";
    x[130] = std::numeric_limits<float>::infinity();
    store_latents(format, x.data(), 256, entry.data());
    EXPECT_EQ(entry[5], lowest);
    const std::vector<float> out = widened(latents_of(format, DType::kF32, 256, 256), entry);
    EXPECT_FLOAT_EQ(out[5], -7.0f);
    for (size_t i = 128; i < 256; ++i) EXPECT_TRUE(std::isnan(out[i])) << i;
  }
}

}  // namespace
}  // namespace foretoken::cpu
