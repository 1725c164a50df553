#include "model/layer/gqa.h"

#include <numeric>

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr GqaSpec kSpec = {
    .num_heads = 4, .num_kv_heads = 2, .head_dim = 4, .inputs = 8, .scale = 0.5f};

class GqaTest : public test::PartTest {
 protected:
  void SetUp() override {
    PartTest::SetUp();
    if (test_device() == nullptr) return;
    add("q_proj.weight", {16, 8});
    add("k_proj.weight", {8, 8});
    add("v_proj.weight", {8, 8});
    add("o_proj.weight", {8, 16});
  }

  Gqa load(const GqaSpec& spec, const Sharding& sharding = {}) {
    return load_part<Gqa>([&](PartLoader& loader, Gqa* out) { return out->load(loader, "", spec); },
                          {}, sharding);
  }
  // Two rows of one sequence, at positions 0 and 1, without rotation.
  void run(const Gqa& gqa, const float* x, Sum to) {
    Gqa::Scratch scratch;
    scratch.fit(gqa.spec);
    ASSERT_TRUE(scratch.take(scratch_source(2)).ok());
    const LayerRows rows = rows_of(2, {0, 1});
    const size_t cache = 2 * 4 * static_cast<size_t>(gqa.spec.kv_size());
    const LayerKv kv{.kv = {allocate<float>(cache), allocate<float>(cache), gqa.spec.num_kv_heads,
                            4, gqa.spec.head_dim, DType::kF32},
                     .kv_slot = to_device(std::vector<int32_t>{4, 5}),
                     .block_tables = to_device(std::vector<int32_t>{1}),
                     .max_blocks = 1,
                     .rope = {}};
    gqa.project(rows, x, scratch);
    gqa.attend(rows, kv, scratch);
    gqa.output(rows, scratch, to);
    read(to.rows, 1);
  }
  // Of the first row, which sees itself alone.
  std::vector<double> expected(const std::vector<double>& x) {
    const auto v = tensors_["v_proj.weight"].times(x);
    std::vector<double> attended;
    for (size_t i = 0; i < 16; ++i) attended.push_back(v[i / 8 * 4 + i % 4]);
    return tensors_["o_proj.weight"].times(attended);
  }
};

TEST_F(GqaTest, ARowThatSeesItselfAlone) {
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  float* y = allocate<float>(16);
  run(load(kSpec), rows, {y});
  EXPECT_EQ(unused_, "");
  expect_near(y, expected(x));
}

TEST_F(GqaTest, HeadsOfRanksAddUp) {
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  float* whole = allocate<float>(16);
  run(load(kSpec), rows, {whole});
  float* y = to_device(std::vector<float>(16, 0.0f));
  for (const int32_t rank : {0, 1, 2, 3}) {
    const Gqa part = load(kSpec, {rank, 4});
    EXPECT_EQ(part.spec.num_heads, 1);
    EXPECT_EQ(part.spec.num_kv_heads, 1);
    run(part, rows, {y, true});
  }
  const auto want = read(whole, 16);
  expect_near(y, {want.begin(), want.end()});
}

TEST_F(GqaTest, FusedTensorsAreTheSame) {
  std::vector<float> stacked;
  for (const char* name : {"q_proj.weight", "k_proj.weight", "v_proj.weight"}) {
    const auto& values = tensors_[name].values;
    stacked.insert(stacked.end(), values.begin(), values.end());
  }
  add("qkv_proj.weight", {32, 8}).values = stacked;
  GqaSpec spec = kSpec;
  spec.fused = true;
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  float* y = to_device(std::vector<float>(16, 0.0f));
  for (const int32_t rank : {0, 1}) run(load(spec, {rank, 2}), rows, {y, true});
  expect_near(y, expected(x));
}

}  // namespace
}  // namespace foretoken
