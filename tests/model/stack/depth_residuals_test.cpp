#include "model/stack/depth_residuals.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int32_t kDepthRows = 2;

using DepthRow = std::vector<double>;

// Their mean as a norm and a query weigh them.
DepthRow weighed_mean(const std::vector<DepthRow>& rows, const test::RigTensor& norm,
                      const test::RigTensor& query) {
  std::vector<double> shares;
  double sum = 0;
  for (const DepthRow& row : rows) {
    double square = 0, score = 0;
    for (const double value : row) square += value * value / static_cast<double>(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      score += row[i] / std::sqrt(square + 1e-5) * norm.values[i] * query.values[i];
    }
    shares.push_back(std::exp(score));
    sum += shares.back();
  }
  DepthRow mean(rows[0].size());
  for (size_t j = 0; j < rows.size(); ++j) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += shares[j] / sum * rows[j][i];
  }
  return mean;
}

class DepthResidualsTest : public test::PartTest {
 protected:
  void SetUp() override {
    test::PartTest::SetUp();
    config_.num_layers = 3;
    config_.depth_block = 2;
    for (const char* name : {"self_attention_res", "mlp_res"}) {
      add(std::string("layers.0.") + name + "_norm.weight", {8});
      add(std::string("layers.0.") + name + "_proj.weight", {1, 8});
    }
    add("model.output_attn_res_norm.weight", {8});
    add("model.output_attn_res_proj.weight", {1, 8});
  }

  const test::RigTensor& tensor(const std::string& name) { return tensors_.at(name + ".weight"); }

  struct Loaded {
    DepthResiduals depth;
    DepthMixer mixer;
  };
  Loaded load() {
    auto loaded = load_part<Loaded>([](PartLoader& loader, Loaded* out) {
      FT_RETURN_IF_ERROR(out->depth.load(loader, "model."));
      return out->mixer.load(loader, "layers.0.",
                             {.exists = true, .blocks = 1, .begins_block = true});
    });
    EXPECT_EQ(unused_, "");
    EXPECT_TRUE(loaded.depth.take_scratch(scratch_source(kDepthRows)).ok());
    return loaded;
  }
};

TEST_F(DepthResidualsTest, KeepWhatEntersBlocksAndWeighIt) {
  Loaded loaded = load();
  EXPECT_FALSE(loaded.depth.empty());
  EXPECT_TRUE(loaded.mixer.exists());
  EXPECT_EQ(loaded.mixer.blocks_behind(), 2);
  DepthRow first;
  float* residual = to_device(read(random_rows(kDepthRows, 8, &first), kDepthRows * 8));
  const LayerRows rows = rows_of(kDepthRows);
  EXPECT_EQ(loaded.depth.mix(rows, loaded.mixer.mixer, 0, residual, nullptr), residual);
  loaded.depth.keep(rows, 0, residual);
  EXPECT_EQ(read(residual, kDepthRows * 8), std::vector<float>(kDepthRows * 8, 0.0f));

  std::vector<float> added(kDepthRows * 8, 0.25f);
  added[3] = -2;
  const float* delta = to_device(added);
  const DepthRow second(added.begin(), added.begin() + 8);
  expect_near(loaded.depth.mix(rows, loaded.mixer.mixer, 1, residual, delta),
              weighed_mean({first, second}, tensor("layers.0.self_attention_res_norm"),
                           tensor("layers.0.self_attention_res_proj")));
  expect_near(residual, second);

  loaded.depth.keep(rows, 1, residual);
  loaded.depth.leave(rows, residual, delta);
  expect_near(residual, weighed_mean({first, second, second}, tensor("model.output_attn_res_norm"),
                                     tensor("model.output_attn_res_proj")));
}

TEST_F(DepthResidualsTest, ReadEachPartByAQueryOfItsOwn) {
  Loaded loaded = load();
  DepthRow first;
  float* residual = to_device(read(random_rows(kDepthRows, 8, &first), kDepthRows * 8));
  const LayerRows rows = rows_of(kDepthRows);
  loaded.depth.keep(rows, 0, residual);
  expect_near(loaded.depth.mix(rows, loaded.mixer.feed_forward, 1, residual, nullptr),
              weighed_mean({first, DepthRow(8)}, tensor("layers.0.mlp_res_norm"),
                           tensor("layers.0.mlp_res_proj")));
}

TEST_F(DepthResidualsTest, AreNothingWithoutBlocks) {
  DepthResiduals none;
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(none.take_scratch(scratch_source(kDepthRows)).ok());
  EXPECT_EQ(DepthResiduals::num_weights(ModelConfig{}), 0);
  EXPECT_EQ(DepthResiduals::num_weights(config_), 16);
}

}  // namespace
}  // namespace foretoken
