#include "model/layer/attention/key_mask.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int32_t kOwn = 6, kWide = 8;  // of a head, and with what stands behind it
constexpr GqaSpec kMasked = {.num_heads = 2,
                             .num_kv_heads = 1,
                             .head_dim = kWide,
                             .inputs = 8,
                             .scale = 0.5f,
                             .value_dim = kOwn,
                             .dynamic_mask = true};

class KeyMaskTest : public test::PartTest {};

TEST_F(KeyMaskTest, HeadsAreNormedAndKeysCarryTerms) {
  const auto& steps = add("dt_proj.weight", {1, kOwn});
  const auto& rates = add("A", {1});
  const test::RigTensor* norms[] = {&add("q_norm.weight", {kOwn}), &add("k_norm.weight", {kOwn})};
  const auto mask = load_part<KeyMask>(
      [](PartLoader& loader, KeyMask* out) { return out->load(loader, "", kMasked); });
  EXPECT_EQ(unused_, "");
  std::vector<double> x;
  random_rows(1, 4 * kWide, &x);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % kWide >= kOwn) x[i] = 0;
  }
  float* qkv = to_device(std::vector<float>(x.begin(), x.end()));
  mask.add(rows_of(1), kMasked, DType::kF32, {qkv, allocate<float>(kWide), allocate<float>(1)});

  std::vector<double> want = x;
  for (size_t head = 0; head < 3; ++head) {
    double* at = &want[head * kWide];
    double square = 0;
    for (size_t i = 0; i < kOwn; ++i) square += at[i] * at[i] / kOwn;
    for (size_t i = 0; i < kOwn; ++i) {
      at[i] = at[i] / std::sqrt(square + 1e-5) * norms[head == 2]->values[i];
    }
    if (head < 2) at[kOwn] = at[kOwn + 1] = 1;
  }
  double step = 0;
  for (size_t i = 0; i < kOwn; ++i) step += steps.values[i] * x[3 * kWide + i];
  const double term = std::exp(rates.values[0] * std::log1p(std::exp(step))) / 0.5;
  std::vector<float> got = read(qkv, want.size());
  const size_t carried = 2 * kWide + kOwn;
  EXPECT_NEAR(double(got[carried]) + got[carried + 1], term, 1e-5);
  got[carried] = got[carried + 1] = 0;
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

}  // namespace
}  // namespace foretoken
