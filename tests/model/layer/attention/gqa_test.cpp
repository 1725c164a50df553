#include "model/layer/attention/gqa.h"

#include <numeric>

#include "base/float8.h"
#include "model/layer/layer_tensors.h"
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
    add("self_attn.q_proj.weight", {16, 8});
    add("self_attn.k_proj.weight", {8, 8});
    add("self_attn.v_proj.weight", {8, 8});
    add("self_attn.o_proj.weight", {8, 16});
  }

  Gqa load(const GqaSpec& spec, const Sharding& sharding = {}) {
    return load_part<Gqa>([&](PartLoader& loader, Gqa* out) { return out->load(loader, "", spec); },
                          {}, sharding);
  }
  // Two rows of one sequence, at positions 0 and 1, without rotation.
  void run(const Gqa& gqa, const float* x, Sum to, KvFormat format = KvFormat::kPlain) {
    Gqa::Scratch scratch;
    scratch.fit(gqa.spec);
    ASSERT_TRUE(scratch.take(scratch_source(2)).ok());
    const LayerRows rows = rows_of(2, {0, 1});
    const size_t cache = 2 * 4 * static_cast<size_t>(gqa.spec.kv_size());
    const LayerKv kv{.kv = {allocate<float>(cache), allocate<float>(cache), gqa.spec.num_kv_heads,
                            4, gqa.spec.head_dim, DType::kF32, format},
                     .kv_slot = to_device(std::vector<int32_t>{4, 5}),
                     .block_tables = to_device(std::vector<int32_t>{1}),
                     .max_blocks = 1,
                     .rope = {}};
    gqa.project(rows, x, scratch);
    gqa.attend(rows, kv, scratch);
    gqa.output(rows, scratch, to);
    read(to.rows, 1);
  }
  // The heads of q or k of a row, normed.
  std::vector<double> normed(const GqaSpec& spec, const char* name, const std::vector<double>& x) {
    std::vector<double> y = tensors_[std::string("self_attn.") + name + "_proj.weight"].times(x);
    const size_t size = spec.qk_norm == QkNorm::kWidth ? y.size() : 4;
    const bool centred = spec.qk_norm == QkNorm::kOwn || spec.qk_norm == QkNorm::kOwnListed;
    const std::string norm = std::string("self_attn.") + name + "_norm";
    for (size_t at = 0; at < y.size(); at += size) {
      double mean = 0, square = 0;
      for (size_t i = at; i < at + size; ++i) mean += centred ? y[i] / double(size) : 0;
      for (size_t i = at; i < at + size; ++i) square += (y[i] - mean) * (y[i] - mean);
      for (size_t i = at; i < at + size; ++i) {
        y[i] = (y[i] - mean) / std::sqrt(square / double(size) + 1e-5);
        if (spec.qk_norm == QkNorm::kUnit) continue;
        if (spec.qk_norm == QkNorm::kOwnListed) {
          y[i] *= tensors_[norm + ".norms." + std::to_string(at / 4) + ".weight"].values[i - at];
        } else {
          y[i] *= tensors_[norm + ".weight"].values[spec.qk_norm == QkNorm::kTurned ? i - at : i];
        }
      }
    }
    return y;
  }
  // Of the row at position 1, which sees both.
  std::vector<double> second_row(const GqaSpec& spec) {
    std::vector<float> x(16);
    foretoken::fill_random("x", 16, 0.8f, DType::kF32, x.data());
    const std::vector<double> first(x.begin(), x.begin() + 8), second(x.begin() + 8, x.end());
    const auto q = normed(spec, "q", second);
    const std::vector<double> k[2] = {normed(spec, "k", first), normed(spec, "k", second)};
    const std::vector<double> v[2] = {tensors_["self_attn.v_proj.weight"].times(first),
                                      tensors_["self_attn.v_proj.weight"].times(second)};
    std::vector<double> attended;
    for (size_t head = 0; head < 4; ++head) {
      double weight[2];
      for (const size_t position : {0u, 1u}) {
        double score = 0;
        for (size_t i = 0; i < 4; ++i) score += q[head * 4 + i] * k[position][head / 2 * 4 + i];
        weight[position] = std::exp(spec.scale * score);
      }
      for (size_t i = 0; i < 4; ++i) {
        const size_t at = head / 2 * 4 + i;
        attended.push_back((weight[0] * v[0][at] + weight[1] * v[1][at]) / (weight[0] + weight[1]));
      }
    }
    return tensors_["self_attn.o_proj.weight"].times(attended);
  }
  // Of the first row, which sees itself alone.
  std::vector<double> expected(const std::vector<double>& x) {
    const auto v = tensors_["self_attn.v_proj.weight"].times(x);
    std::vector<double> attended;
    for (size_t i = 0; i < 16; ++i) attended.push_back(v[i / 8 * 4 + i % 4]);
    return tensors_["self_attn.o_proj.weight"].times(attended);
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

// Codes end at 448 times the scale of their head, so that an entry tells which one it had.
TEST_F(GqaTest, ScalesOfTheCheckpointReachTheCodes) {
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  tensors_["self_attn.k_scale"] = {{}, {0.01f}};
  tensors_["self_attn.v_scale"] = {{2, 1, 1}, {1e-6f, 0.002f}};
  float* plain = allocate<float>(16);
  run(load(kSpec), rows, {plain});
  EXPECT_EQ(unused_, "");
  expect_near(plain, expected(x));  // scales are of codes alone
  float* y = allocate<float>(16);
  run(load(kSpec), rows, {y}, KvFormat::kFp8);
  const auto v = tensors_["self_attn.v_proj.weight"].times(x);
  std::vector<double> attended;
  for (size_t i = 0; i < 16; ++i) {
    const size_t at = i / 8 * 4 + i % 4;
    const double scale = at < 4 ? double(1e-6f) : double(0.002f);
    attended.push_back(e4m3_value(e4m3_code(static_cast<float>(v[at] / scale))) * scale);
  }
  EXPECT_NEAR(std::abs(attended[0]), 448e-6, 1e-9);
  expect_near(y, tensors_["self_attn.o_proj.weight"].times(attended));
}

// Rows of a head whose turning pairs lie side by side give what rows in halves give.
TEST_F(GqaTest, PairedRowsAreTheSame) {
  GqaSpec spec = kSpec;
  spec.qkv_bias = true;
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    const std::string base = std::string("self_attn.") + name;
    add(base + ".bias", {tensors_[base + ".weight"].shape[0]});
  }
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  float* want = allocate<float>(16);
  run(load(spec), rows, {want});
  // Elements 0 1 2 3 of a head in halves are 0 2 1 3 in pairs.
  for (const char* name : {"q_proj", "k_proj"}) {
    for (const char* ending : {".weight", ".bias"}) {
      test::RigTensor& tensor = tensors_[std::string("self_attn.") + name + ending];
      const size_t cols = tensor.shape.size() > 1 ? 8 : 1;
      for (size_t at = 0; at < tensor.values.size(); at += 4 * cols) {
        for (size_t c = 0; c < cols; ++c) {
          std::swap(tensor.values[at + cols + c], tensor.values[at + 2 * cols + c]);
        }
      }
    }
  }
  spec.paired = 4;
  float* y = allocate<float>(16);
  run(load(spec), rows, {y});
  EXPECT_EQ(read(y, 16), read(want, 16));
}

// A tensor that holds the queries of a key head, it and its values, and the next ones behind them,
// whole and in ranks.
TEST_F(GqaTest, GroupsOfAFusedTensorAreTheSame) {
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  float* want = allocate<float>(16);
  run(load(kSpec), rows, {want});
  std::vector<float> all;
  const auto put = [&](const char* name, size_t head) {
    const auto& values = tensors_[std::string("self_attn.") + name].values;
    const auto begin = values.begin() + static_cast<ptrdiff_t>(head * 32);
    all.insert(all.end(), begin, begin + 32);
  };
  for (const size_t group : {0u, 1u}) {
    put("q_proj.weight", 2 * group);
    put("q_proj.weight", 2 * group + 1);
    put("k_proj.weight", group);
    put("v_proj.weight", group);
  }
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    tensors_.erase(std::string("self_attn.") + name + ".weight");
  }
  add("self_attn.query_key_value.weight", {32, 8}).values = all;
  GqaSpec spec = kSpec;
  spec.fused = true;
  spec.fused_by_group = true;
  spec.qkv = "query_key_value";
  float* y = allocate<float>(16);
  run(load(spec), rows, {y});
  EXPECT_EQ(unused_, "");
  EXPECT_EQ(read(y, 16), read(want, 16));
  float* sum = to_device(std::vector<float>(16, 0.0f));
  for (const int32_t rank : {0, 1}) run(load(spec, {rank, 2}), rows, {sum, true});
  const auto whole = read(want, 16);
  expect_near(sum, {whole.begin(), whole.end()});
}

// Two pieces of a head each, with queries, values and keys; whole and in ranks.
TEST_F(GqaTest, PiecesOfAFusedTensorAreTheSame) {
  GqaSpec spec = kSpec;
  spec.num_kv_heads = spec.num_heads;
  for (const char* name : {"k_proj", "v_proj"}) {
    tensors_.erase(std::string("self_attn.") + name + ".weight");
    add(std::string("self_attn.") + name + ".weight", {spec.q_size(), 8});
  }
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  float* want = allocate<float>(16);
  run(load(spec), rows, {want});
  std::vector<float> all;
  const auto half = static_cast<ptrdiff_t>(spec.q_size() * 8 / 2);
  for (const ptrdiff_t piece : {0, 1}) {
    for (const char* name : {"q_proj", "v_proj", "k_proj"}) {
      const auto& values = tensors_[std::string("self_attn.") + name + ".weight"].values;
      const auto begin = values.begin() + piece * half;
      all.insert(all.end(), begin, begin + half);
    }
  }
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    tensors_.erase(std::string("self_attn.") + name + ".weight");
  }
  add("self_attn.qkv_proj.weight", {3 * spec.q_size(), 8}).values = all;
  spec.fused = true;
  spec.fused_pieces = 2;
  float* y = allocate<float>(16);
  run(load(spec), rows, {y});
  EXPECT_EQ(unused_, "");
  EXPECT_EQ(read(y, 16), read(want, 16));
  float* sum = to_device(std::vector<float>(16, 0.0f));
  for (const int32_t rank : {0, 1}) run(load(spec, {rank, 2}), rows, {sum, true});
  const auto whole = read(want, 16);
  expect_near(sum, {whole.begin(), whole.end()});
}

// The rows of a norm over all heads of a row, and of those with weights of their own.
TEST_F(GqaTest, NormsOfQueriesAndKeys) {
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  for (const QkNorm norm :
       {QkNorm::kWidth, QkNorm::kOwn, QkNorm::kOwnListed, QkNorm::kUnit, QkNorm::kTurned}) {
    GqaSpec spec = kSpec;
    spec.qk_norm = norm;
    for (const LayerTensor& tensor :
         layer_tensors({.mixer = spec, .feed_forward = Absent()}, {}, 8)) {
      if (tensor.name.find("norm") == std::string::npos) continue;
      std::vector<int64_t> shape = {tensor.rows};
      if (tensor.cols > 0) shape.push_back(tensor.cols);
      add(tensor.name, shape);
    }
    float* y = allocate<float>(16);
    run(load(spec), rows, {y});
    EXPECT_EQ(unused_, "");
    expect_near(y, expected(x));  // a row that sees itself alone reads its value as it is
    const std::vector<double> second = second_row(spec);
    expect_near(y + 8, second);
    for (auto it = tensors_.begin(); it != tensors_.end();) {
      it = it->first.find("norm") == std::string::npos ? std::next(it) : tensors_.erase(it);
    }
  }
}

// Gates of heads and of elements, whole and in ranks.
TEST_F(GqaTest, GatesMultiplyWhatHeadsAttendedTo) {
  std::vector<double> x;
  const float* rows = random_rows(2, 8, &x);
  add("self_attn.g_proj.weight", {4, 8});
  add("self_attn.gate_proj.weight", {16, 8});
  const auto v = tensors_["self_attn.v_proj.weight"].times(x);
  for (const bool each : {false, true}) {
    GqaSpec spec = kSpec;
    spec.gates = each ? HeadGates::kEachElement : HeadGates::kEachHead;
    spec.gate = each ? HeadGate::kSigmoid : HeadGate::kSoftplus;
    spec.gate_proj = each ? "gate_proj" : "g_proj";
    const auto gates = tensors_[std::string("self_attn.") + spec.gate_proj + ".weight"].times(x);
    std::vector<double> attended;
    for (size_t i = 0; i < 16; ++i) {
      const double gate = gates[each ? i : i / 4];
      const double factor = each ? 1 / (1 + std::exp(-gate)) : std::log1p(std::exp(gate));
      attended.push_back(v[i / 8 * 4 + i % 4] * factor);
    }
    const auto want = tensors_["self_attn.o_proj.weight"].times(attended);
    float* y = allocate<float>(16);
    run(load(spec), rows, {y});
    expect_near(y, want);
    float* sum = to_device(std::vector<float>(16, 0.0f));
    for (const int32_t rank : {0, 1}) run(load(spec, {rank, 2}), rows, {sum, true});
    expect_near(sum, want);
  }
}

TEST_F(GqaTest, FusedTensorsAreTheSame) {
  std::vector<float> stacked;
  for (const char* name :
       {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"}) {
    const auto& values = tensors_[name].values;
    stacked.insert(stacked.end(), values.begin(), values.end());
  }
  add("self_attn.qkv_proj.weight", {32, 8}).values = stacked;
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
