#include "model/layer/attention/latent.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr LatentSpec kLatents = {.num_heads = 4,
                                 .q_rank = 6,
                                 .kv_rank = 16,
                                 .nope_dim = 5,
                                 .rope_dim = 4,
                                 .value_dim = 16,
                                 .inputs = 8,
                                 .scale = 0.4f};
constexpr float kFrequencies[2] = {0.7f, 0.2f};
constexpr int kRows = 3;

using DoubleRow = std::vector<double>;

// Latent attention as it is written down: keys and values of all heads are made of the latents of
// all positions, pairs that turn lie side by side.
class LatentTest : public test::PartTest {
 protected:
  void SetUp() override {
    PartTest::SetUp();
    if (test_device() == nullptr) return;
    fill(kLatents);
  }

  void fill(const LatentSpec& spec) {
    tensors_.clear();
    if (spec.q_rank > 0) {
      add("self_attn.q_a_proj.weight", {spec.q_rank, 8});
      add("self_attn.q_a_layernorm.weight", {spec.q_rank});
      add("self_attn.q_b_proj.weight", {spec.q_size(), spec.q_rank});
    } else {
      add("self_attn.q_proj.weight", {spec.q_size(), 8});
    }
    add("self_attn.kv_a_proj_with_mqa.weight", {spec.entry_dim(), 8});
    add("self_attn.kv_a_layernorm.weight", {spec.kv_rank});
    add("self_attn.kv_b_proj.weight", {4 * (spec.nope_dim + spec.value_dim), spec.kv_rank});
    add("self_attn.o_proj.weight", {8, 4 * spec.value_dim});
    if (!spec.index.exists()) return;
    add("self_attn.indexer.wk.weight", {spec.index.head_dim, 8});
    add("self_attn.indexer.weights_proj.weight", {spec.index.num_heads, 8});
    add("self_attn.indexer.wq_b.weight", {spec.index.num_heads * spec.index.head_dim, spec.q_rank});
    add("self_attn.indexer.k_norm.weight", {spec.index.head_dim});
    add("self_attn.indexer.k_norm.bias", {spec.index.head_dim});
  }

  Latent load(const LatentSpec& spec, const Sharding& sharding = {}) {
    return load_part<Latent>(
        [&](PartLoader& loader, Latent* out) { return out->load(loader, "", spec); }, {}, sharding);
  }

  // kRows rows of one sequence, from position 0 on.
  void run(const Latent& latent, const float* x, Sum to) {
    Latent::Scratch scratch;
    scratch.fit(latent.spec);
    ASSERT_TRUE(scratch.take(scratch_source(kRows)).ok());
    const LayerRows rows = rows_of(kRows, {0, 1, 2});
    float* cache = allocate<float>(2 * 4 * static_cast<size_t>(latent.spec.entry_dim()));
    KvLayer layer{cache, cache, 1, 4, latent.spec.entry_dim(), DType::kF32};
    layer.value_dim = latent.spec.kv_rank;
    const float* frequencies = to_device(std::vector<float>(kFrequencies, kFrequencies + 2));
    const LayerKv kv{.kv = layer,
                     .kv_slot = to_device(std::vector<int32_t>{4, 5, 6}),
                     .block_tables = to_device(std::vector<int32_t>{1}),
                     .max_blocks = 1,
                     .rope = {frequencies, 4, 1},
                     .index_keys = allocate<float>(2 * 4 * 16)};
    latent.project(rows, x, scratch);
    latent.attend(rows, kv, scratch);
    latent.output(rows, scratch, to);
    read(to.rows, 1);
  }

  DoubleRow product(const char* name, const DoubleRow& x) {
    return tensors_[std::string("self_attn.") + name + ".weight"].times(x);
  }
  DoubleRow normed(const char* name, const DoubleRow& x) {
    const auto& weight = tensors_[std::string("self_attn.") + name + ".weight"].values;
    double squares = 0;
    for (const double value : x) squares += value * value;
    DoubleRow y;
    for (size_t i = 0; i < x.size(); ++i) {
      y.push_back(x[i] * weight[i] / std::sqrt(squares / double(x.size()) + 1e-6));
    }
    return y;
  }
  static void turn(double* pairs, int position, bool paired) {
    for (size_t i = 0; i < 2; ++i) {
      double& a = pairs[paired ? 2 * i : i];
      double& b = pairs[paired ? 2 * i + 1 : i + 2];
      const double angle = position * double(kFrequencies[i]), x = a, y = b;
      a = x * std::cos(angle) - y * std::sin(angle);
      b = y * std::cos(angle) + x * std::sin(angle);
    }
  }

  // What the last row adds to the residual.
  DoubleRow last_row(const LatentSpec& spec, const std::vector<DoubleRow>& x) {
    const auto nope = size_t(spec.nope_dim), value = size_t(spec.value_dim);
    const size_t dim = nope + 4;
    DoubleRow q = spec.q_rank > 0
                      ? product("q_b_proj", normed("q_a_layernorm", product("q_a_proj", x.back())))
                      : product("q_proj", x.back());
    std::vector<DoubleRow> expanded, turned;
    for (size_t p = 0; p < x.size(); ++p) {
      DoubleRow kv = product("kv_a_proj_with_mqa", x[p]);
      turned.emplace_back(kv.end() - 4, kv.end());
      turn(turned.back().data(), int(p), spec.paired);
      kv.resize(size_t(spec.kv_rank));
      expanded.push_back(product("kv_b_proj", normed("kv_a_layernorm", kv)));
    }
    DoubleRow attended;
    for (size_t head = 0; head < 4; ++head) {
      turn(&q[head * dim + nope], int(x.size()) - 1, spec.paired);
      DoubleRow out(value, 0.0);
      double sum = 0;
      for (size_t p = 0; p < x.size(); ++p) {
        const double* key = &expanded[p][head * (nope + value)];
        double score = 0;
        for (size_t i = 0; i < nope; ++i) score += q[head * dim + i] * key[i];
        for (size_t i = 0; i < 4; ++i) score += q[head * dim + nope + i] * turned[p][i];
        const double weight = std::exp(score * spec.scale);
        sum += weight;
        for (size_t i = 0; i < value; ++i) out[i] += weight * key[nope + i];
      }
      for (const double each : out) attended.push_back(each / sum);
    }
    return product("o_proj", attended);
  }

  const float* random_inputs(std::vector<DoubleRow>* all) {
    std::vector<float> x(kRows * 8);
    foretoken::fill_random("x", kRows * 8, 0.8f, DType::kF32, x.data());
    for (int r = 0; r < kRows; ++r) all->emplace_back(x.begin() + r * 8, x.begin() + r * 8 + 8);
    return to_device(x);
  }
};

TEST_F(LatentTest, AbsorbedAttentionIsTheExpandedOne) {
  std::vector<DoubleRow> x;
  const float* rows = random_inputs(&x);
  for (const int32_t q_rank : {6, 0}) {
    for (const bool paired : {true, false}) {
      LatentSpec spec = kLatents;
      spec.q_rank = q_rank;
      spec.paired = paired;
      fill(spec);
      float* y = allocate<float>(kRows * 8);
      run(load(spec), rows, {y});
      EXPECT_EQ(unused_, "");
      expect_near(y + (kRows - 1) * 8, last_row(spec, x));
    }
  }
}

TEST_F(LatentTest, HeadsOfRanksAddUp) {
  std::vector<DoubleRow> x;
  const float* rows = random_inputs(&x);
  float* whole = allocate<float>(kRows * 8);
  run(load(kLatents), rows, {whole});
  float* y = to_device(std::vector<float>(kRows * 8, 0.0f));
  for (const int32_t rank : {0, 1}) {
    const Latent part = load(kLatents, {rank, 2});
    EXPECT_EQ(part.spec.num_heads, 2);
    run(part, rows, {y, true});
  }
  const auto want = read(whole, kRows * 8);
  expect_near(y, {want.begin(), want.end()});
}

// The indexer is whole on each: all attend to the same two of three positions.
TEST_F(LatentTest, RanksAttendToTheSamePositions) {
  std::vector<DoubleRow> x;
  const float* rows = random_inputs(&x);
  LatentSpec spec = kLatents;
  spec.index = {.num_heads = 3, .head_dim = 16, .top = 2};
  fill(spec);
  float* whole = allocate<float>(kRows * 8);
  run(load(spec), rows, {whole});
  EXPECT_EQ(unused_, "");
  float* y = to_device(std::vector<float>(kRows * 8, 0.0f));
  for (const int32_t rank : {0, 1}) run(load(spec, {rank, 2}), rows, {y, true});
  const auto want = read(whole, kRows * 8);
  expect_near(y, {want.begin(), want.end()});
  const DoubleRow dense = last_row(spec, x);
  double difference = 0;
  for (size_t i = 0; i < 8; ++i) difference += std::abs(dense[i] - want[(kRows - 1) * 8 + i]);
  EXPECT_GT(difference, 1e-3);
}

// Files of llama.cpp have keys as they are absorbed, and values apart.
TEST_F(LatentTest, DividedTensorsAreTheSame) {
  std::vector<DoubleRow> x;
  const float* rows = random_inputs(&x);
  float* want = allocate<float>(kRows * 8);
  run(load(kLatents), rows, {want});
  const std::vector<float> both = tensors_["self_attn.kv_b_proj.weight"].values;
  tensors_.erase("self_attn.kv_b_proj.weight");
  auto& keys = add("self_attn.k_b_proj.weight", {4, 16, 5}).values;
  auto& values = add("self_attn.v_b_proj.weight", {4, 16, 16}).values;
  for (size_t head = 0; head < 4; ++head) {
    for (size_t column = 0; column < 16; ++column) {
      for (size_t i = 0; i < 5; ++i) {
        keys[(head * 16 + column) * 5 + i] = both[(head * 21 + i) * 16 + column];
      }
      for (size_t i = 0; i < 16; ++i) {
        values[(head * 16 + i) * 16 + column] = both[(head * 21 + 5 + i) * 16 + column];
      }
    }
  }
  float* y = allocate<float>(kRows * 8);
  run(load(kLatents), rows, {y});
  EXPECT_EQ(unused_, "");
  EXPECT_EQ(read(y, kRows * 8), read(want, kRows * 8));
  float* parts = to_device(std::vector<float>(kRows * 8, 0.0f));
  for (const int32_t rank : {0, 1}) run(load(kLatents, {rank, 2}), rows, {parts, true});
  const auto sum = read(want, kRows * 8);
  expect_near(parts, {sum.begin(), sum.end()});
}

TEST_F(LatentTest, BiasesNeedCompressedQueries) {
  LatentSpec spec = kLatents;
  spec.q_rank = 0;
  spec.bias = true;
  fill(spec);
  load_part<Latent>([&](PartLoader& loader, Latent* out) {
    EXPECT_NE(out->load(loader, "", spec).message().find("attention_bias"), std::string::npos);
    return Status();
  });
}

TEST_F(LatentTest, WrongShapesAreNamed) {
  add("self_attn.kv_b_proj.weight", {4 * 20, 16});
  load_part<Latent>([&](PartLoader& loader, Latent* out) {
    const std::string message = out->load(loader, "", kLatents).message();
    EXPECT_NE(message.find("kv_b_proj"), std::string::npos) << message;
    EXPECT_NE(message.find("[80, 16]"), std::string::npos) << message;
    return Status();
  });
}

}  // namespace
}  // namespace foretoken
