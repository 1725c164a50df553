#include "model/stack/hyper_streams.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int kHyperHidden = 8, kHyperStreams = 3, kHyperRows = 2;

class HyperStreamsTest : public test::PartTest {
 protected:
  struct Loaded {
    HyperStreams streams;
    HyperConnection part;
  };
  void add_connection(const std::string& name, int64_t made, int64_t scales) {
    add(name + "fn", {made, kHyperStreams * kHyperHidden});
    add(name + "base", {made});
    add(name + "scale", {scales});
  }
  Loaded load() {
    config_.hyper = {.count = kHyperStreams, .rounds = 4, .eps = 1e-6f};
    add_connection("hc_head_", kHyperStreams, 1);
    add_connection("layers.0.hc_attn_", (2 + kHyperStreams) * kHyperStreams, 3);
    Loaded loaded = load_part<Loaded>([this](PartLoader& loader, Loaded* out) {
      FT_RETURN_IF_ERROR(out->streams.load(loader, ""));
      return out->part.load(loader, "layers.0.hc_attn_", StreamWeights::kMix);
    });
    EXPECT_EQ(unused_, "");
    EXPECT_TRUE(loaded.streams.take_scratch(scratch_source(kHyperRows)).ok());
    return loaded;
  }
  // Of the first row, whose streams are all x: how much of it enters.
  double entering(const std::string& name, const std::vector<double>& x) {
    double squares = 0, sum = 0;
    for (const double value : x) squares += value * value / kHyperHidden;
    std::vector<double> flat;
    for (int s = 0; s < kHyperStreams; ++s) flat.insert(flat.end(), x.begin(), x.end());
    const auto products = tensors_[name + "fn"].times(flat);
    for (size_t s = 0; s < kHyperStreams; ++s) {
      const double biased =
          products[s] / std::sqrt(squares + 1e-5) * double(tensors_[name + "scale"].values[0]) +
          double(tensors_[name + "base"].values[s]);
      sum += 1 / (1 + std::exp(-biased)) + 1e-6;
    }
    return sum;
  }
};

TEST_F(HyperStreamsTest, StreamsThatAreAlikeFoldToAShareOfThem) {
  Loaded loaded = load();
  EXPECT_FALSE(loaded.streams.empty());
  EXPECT_TRUE(loaded.part.exists());
  std::vector<double> x;
  const float* embedded = random_rows(kHyperRows, kHyperHidden, &x);
  float* residual = allocate<float>(size_t{kHyperRows} * kHyperHidden);
  const LayerRows rows = rows_of(kHyperRows);
  loaded.streams.expand(rows, embedded);
  loaded.streams.fold(rows, loaded.part, residual);
  std::vector<double> want = x;
  for (double& value : want) value *= entering("layers.0.hc_attn_", x);
  expect_near(residual, want);
  loaded.streams.collapse(rows, residual);
  want = x;
  for (double& value : want) value *= entering("hc_head_", x);
  expect_near(residual, want);
}

// What streams give to each other is balanced, so that all of it together stays; what a part makes
// is added.
TEST_F(HyperStreamsTest, NothingIsLostWhereAPartMakesNothing) {
  Loaded loaded = load();
  std::vector<double> x;
  const float* embedded = random_rows(kHyperRows, kHyperHidden, &x);
  float* residual = allocate<float>(size_t{kHyperRows} * kHyperHidden);
  const LayerRows rows = rows_of(kHyperRows);
  loaded.streams.expand(rows, embedded);
  loaded.streams.fold(rows, loaded.part, residual);
  loaded.streams.spread(rows, allocate<float>(size_t{kHyperRows} * kHyperHidden));
  loaded.streams.fold(rows, loaded.part, residual);
  std::vector<double> want = x;
  for (double& value : want) value *= entering("layers.0.hc_attn_", x);
  expect_near(residual, want, 1e-3);
  loaded.streams.spread(rows, embedded);
  const auto before = read(residual, kHyperHidden);
  loaded.streams.fold(rows, loaded.part, residual);
  EXPECT_NE(read(residual, kHyperHidden), before);
}

// Whatever is added to the shares by which streams enter parts.
TEST_F(HyperStreamsTest, WithoutWeightsOfTheirEndStreamsLeaveAsTheirMean) {
  for (const float eps : {1e-6f, 0.4f}) {
    config_.hyper = {.count = kHyperStreams, .rounds = 4, .eps = eps, .of_end = nullptr};
    HyperStreams streams = load_part<HyperStreams>(
        [](PartLoader& loader, HyperStreams* out) { return out->load(loader, ""); });
    ASSERT_TRUE(streams.take_scratch(scratch_source(kHyperRows)).ok());
    std::vector<double> x;
    const float* embedded = random_rows(kHyperRows, kHyperHidden, &x);
    float* residual = allocate<float>(size_t{kHyperRows} * kHyperHidden);
    const LayerRows rows = rows_of(kHyperRows);
    streams.expand(rows, embedded);
    streams.collapse(rows, residual);
    expect_near(residual, x);
  }
}

TEST_F(HyperStreamsTest, AModelWithOneStreamHasNone) {
  add("other", {2});
  const auto streams = load_part<HyperStreams>(
      [](PartLoader& loader, HyperStreams* out) { return out->load(loader, ""); });
  EXPECT_TRUE(streams.empty());
  config_.hyper.count = 4;
  EXPECT_EQ(HyperStreams::num_weights(config_), 4 * (4 * 8 + 1) + 1);
}

}  // namespace
}  // namespace foretoken
