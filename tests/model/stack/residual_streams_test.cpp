#include "model/stack/residual_streams.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int kStreamHidden = 8, kStreams = 3, kStreamRows = 2;

using StreamRow = std::vector<double>;

double mean_square_of_row(const StreamRow& x) {
  double sum = 0;
  for (const double value : x) sum += value * value / static_cast<double>(x.size());
  return sum;
}

// x with the magnitude of `like`.
StreamRow matched_row(StreamRow x, const StreamRow& like) {
  const double factor = std::sqrt(mean_square_of_row(like) / std::max(mean_square_of_row(x), 1e-5));
  for (double& value : x) value *= factor;
  return x;
}

class ResidualStreamsTest : public test::PartTest {
 protected:
  void SetUp() override {
    test::PartTest::SetUp();
    config_.streams = {.count = kStreams, .active = 1, .scaled = true};
    for (int i = 1; i < kStreams; ++i) {
      in_.push_back(add("model.altup_projections." + std::to_string(i - 1) + ".weight", {8, 8}));
      out_.push_back(
          add("model.altup_unembed_projections." + std::to_string(i - 1) + ".weight", {8, 8}));
    }
    norm_ = add("layers.0.altup.router_norm.weight", {8});
    router_ = add("layers.0.altup.modality_router.weight", {kStreams, 8});
    predict_ = add("layers.0.altup.prediction_coefs.weight", {kStreams * kStreams, kStreams});
    correct_ = add("layers.0.altup.correction_coefs.weight", {kStreams, kStreams});
    scale_ = add("layers.0.altup.correct_output_scale", {8});
  }

  struct Loaded {
    ResidualStreams streams;
    StreamMixer mixer;
  };
  Loaded load() {
    return load_part<Loaded>([this](PartLoader& loader, Loaded* out) {
      FT_RETURN_IF_ERROR(out->streams.load(loader, "model."));
      return out->mixer.load(loader, "layers.0.", config_.streams);
    });
  }

  // What a row says, before it is weighted.
  StreamRow routed(StreamRow active) const {
    const double factor = 1 / std::sqrt(mean_square_of_row(active) + 1e-5);
    for (size_t i = 0; i < active.size(); ++i) active[i] *= factor * norm_.values[i];
    StreamRow turned = router_.times(active);
    for (double& value : turned) value = std::tanh(value / kStreamHidden);
    return turned;
  }
  std::vector<StreamRow> expanded(const StreamRow& x) const {
    std::vector<StreamRow> streams{x};
    for (const auto& way : in_) streams.push_back(matched_row(way.times(x), x));
    return streams;
  }
  std::vector<StreamRow> predicted(const std::vector<StreamRow>& streams) const {
    const StreamRow factors = predict_.times(routed(streams[1]));
    std::vector<StreamRow> moved = streams;
    for (size_t i = 0; i < kStreams; ++i) {
      for (size_t j = 0; j < kStreams; ++j) {
        for (size_t c = 0; c < kStreamHidden; ++c)
          moved[i][c] += factors[i * 3 + j] * streams[j][c];
      }
    }
    return moved;
  }
  std::vector<StreamRow> corrected(const std::vector<StreamRow>& streams,
                                   const StreamRow& activated) const {
    const StreamRow factors = correct_.times(routed(activated));
    std::vector<StreamRow> moved = streams;
    for (size_t i = 0; i < kStreams; ++i) {
      for (size_t c = 0; c < kStreamHidden; ++c) {
        moved[i][c] += (1 + factors[i]) * (activated[c] - streams[1][c]);
      }
    }
    return moved;
  }

  std::vector<test::RigTensor> in_, out_;
  test::RigTensor norm_, router_, predict_, correct_, scale_;
};

TEST_F(ResidualStreamsTest, GoThroughALayerAndBecomeOne) {
  Loaded loaded = load();
  EXPECT_EQ(unused_, "");
  ASSERT_TRUE(loaded.streams.take_scratch(scratch_source(kStreamRows)).ok());
  const LayerRows rows = rows_of(kStreamRows);
  StreamRow x, delta;
  std::vector<float> entering(kStreamRows * kStreamHidden);
  foretoken::fill_random("e", kStreamRows * kStreamHidden, 0.7f, DType::kF32, entering.data());
  x.assign(entering.begin(), entering.begin() + kStreamHidden);
  float* residual = to_device(entering);
  loaded.streams.expand(rows, residual);
  loaded.streams.predict(rows, loaded.mixer, residual);
  const std::vector<StreamRow> predictions = predicted(expanded(x));
  expect_near(residual, predictions[1]);

  std::vector<float> made(kStreamRows * kStreamHidden);
  foretoken::fill_random("m", kStreamRows * kStreamHidden, 0.7f, DType::kF32, made.data());
  const StreamRow activated(made.begin(), made.begin() + kStreamHidden);
  residual = to_device(made);
  loaded.streams.correct(rows, loaded.mixer, residual);
  std::vector<StreamRow> streams = corrected(predictions, activated);
  StreamRow scaled = streams[1];
  for (size_t c = 0; c < kStreamHidden; ++c) scaled[c] *= scale_.values[c];
  expect_near(residual, scaled);

  const float* added = random_rows(kStreamRows, kStreamHidden, &delta);
  loaded.streams.add(rows, added);
  loaded.streams.collapse(rows, residual);
  StreamRow want = streams[0];
  for (size_t i = 1; i < kStreams; ++i) {
    for (size_t c = 0; c < kStreamHidden; ++c) streams[i][c] += delta[c];
    const StreamRow out = matched_row(out_[i - 1].times(streams[i]), streams[0]);
    for (size_t c = 0; c < kStreamHidden; ++c) want[c] += out[c];
  }
  for (double& value : want) value /= kStreams;
  expect_near(residual, want);
}

TEST_F(ResidualStreamsTest, CountTheirMatrices) {
  EXPECT_EQ(ResidualStreams::num_weights(config_), 4 * kStreamHidden * kStreamHidden);
  EXPECT_EQ(ResidualStreams::num_weights({}), 0);
  EXPECT_TRUE(ResidualStreams().empty());
}

}  // namespace
}  // namespace foretoken
