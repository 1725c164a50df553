#include "model/layer/recurrent/linear_mixer.h"

#include <algorithm>
#include <tuple>

#include "model/layer/layer_tensors.h"
#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int32_t kStateRows = 5;
constexpr size_t kStateInputs = 8, kKeys = 2, kValues = 4, kKeyDim = 4, kValueDim = 6, kWidth = 3;
constexpr size_t kQ = kKeys * kKeyDim, kV = kValues * kValueDim, kChannels = 2 * kQ + kV;

using Row = std::vector<double>;

LinearSpec delta_spec(LinearFiles files) {
  LinearSpec spec{.shape = {.key_heads = 2,
                            .value_heads = 4,
                            .key_dim = 4,
                            .value_dim = 6,
                            .scaled = true,
                            .delta = true},
                  .inputs = 8,
                  .conv_width = 3,
                  .unit = true,
                  .q_scale = 0.5f,
                  .norm_groups = 4,
                  .files = files};
  if (files == LinearFiles::kJoined) spec.in_qkv = "in_proj";
  if (files != LinearFiles::kByGroup) return spec;
  spec.in_qkv = "in_proj_qkvz";
  spec.in_decay = "in_proj_ba";
  return spec;
}

LinearSpec step_spec() {
  return {.shape = {.key_heads = 2, .value_heads = 4, .key_dim = 4, .value_dim = 6, .scaled = true},
          .inputs = 8,
          .conv_width = 3,
          .conv_bias = true,
          .gates = LinearGates::kStep,
          .min_step = 0.01f,
          .max_step = 1.5f,
          .norm_groups = 2,
          .norm_own_weights = true,
          .gates_first = true,
          .files = LinearFiles::kStep,
          .base = "mamba.",
          .in_qkv = "in_proj",
          .skip = "D"};
}

double silu(double x) { return x / (1 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Linear attention as it is written down, a row after the other, on matrices that lie apart:
// q, k, v, z, a (decays or steps) and b (scales).
class LinearMixerTest : public test::PartTest {
 protected:
  void fill(const LinearSpec& spec) {
    for (const auto& [name, rows] :
         {std::pair{"q", kQ}, {"k", kQ}, {"v", kV}, {"z", kV}, {"a", kValues}, {"b", kValues}}) {
      test::RigTensor& made = add(name, {int64_t(rows), int64_t(kStateInputs)});
      plain_[name] = made;
      tensors_.erase(name);
    }
    const std::string base = spec.base;
    add(base + "conv1d.weight", {int64_t(kChannels), 1, int64_t(kWidth)});
    if (spec.conv_bias) add(base + "conv1d.bias", {int64_t(kChannels)});
    add(base + "A_log", {int64_t(kValues)});
    add(base + "dt_bias", {int64_t(kValues)});
    if (spec.skip != nullptr) add(base + "D", {int64_t(kValues)});
    add(base + "norm.weight", {int64_t(spec.norm_own_weights ? kV : kValueDim)});
    add(base + "out_proj.weight", {int64_t(kStateInputs), int64_t(kV)});
    switch (spec.files) {
      case LinearFiles::kApart:
        store(base + "in_proj_qkv", {{"q", 0, kQ}, {"k", 0, kQ}, {"v", 0, kV}});
        store(base + "in_proj_z", {{"z", 0, kV}});
        store(base + "in_proj_a", {{"a", 0, kValues}});
        store(base + "in_proj_b", {{"b", 0, kValues}});
        break;
      case LinearFiles::kByGroup:
        store(base + "in_proj_qkvz", {{"q", 0, 4},
                                      {"k", 0, 4},
                                      {"v", 0, 12},
                                      {"z", 0, 12},
                                      {"q", 4, 4},
                                      {"k", 4, 4},
                                      {"v", 12, 12},
                                      {"z", 12, 12}});
        store(base + "in_proj_ba", {{"b", 0, 2}, {"a", 0, 2}, {"b", 2, 2}, {"a", 2, 2}});
        break;
      case LinearFiles::kStep:
        store(base + "in_proj",
              {{"z", 0, kV}, {"v", 0, kV}, {"k", 0, kQ}, {"q", 0, kQ}, {"a", 0, kValues}});
        break;
      case LinearFiles::kJoined:
        store(base + "in_proj", {{"q", 0, kQ},
                                 {"k", 0, kQ},
                                 {"v", 0, kV},
                                 {"z", 0, kV},
                                 {"b", 0, kValues},
                                 {"a", 0, kValues}});
        break;
      case LinearFiles::kEach:
        for (const auto& [name, plain, rows] : {std::tuple{"q_proj", "q", kQ},
                                                {"k_proj", "k", kQ},
                                                {"v_proj", "v", kV},
                                                {"in_proj_z", "z", kV},
                                                {"in_proj_a", "a", kValues},
                                                {"in_proj_b", "b", kValues}}) {
          store(base + name, {{plain, 0, rows}});
        }
        break;
      case LinearFiles::kByHead:
        FAIL();
    }
  }

  // Rows of the plain matrices, one after the other.
  struct Piece {
    const char* name;
    size_t first;
    size_t rows;
  };
  void store(const std::string& name, const std::vector<Piece>& pieces) {
    test::RigTensor all{{0, int64_t(kStateInputs)}, {}};
    for (const Piece& piece : pieces) {
      const auto from = plain_[piece.name].values.begin() + ptrdiff_t(piece.first * kStateInputs);
      all.values.insert(all.values.end(), from, from + ptrdiff_t(piece.rows * kStateInputs));
      all.shape[0] += int64_t(piece.rows);
    }
    tensors_[name + ".weight"] = all;
  }

  LinearMixer load(const LinearSpec& spec, const Sharding& sharding = {}) {
    return load_part<LinearMixer>(
        [&](PartLoader& loader, LinearMixer* out) { return out->load(loader, "", spec); }, {},
        sharding);
  }

  LayerState state_of(const LinearSpec& spec) {
    const auto channels = size_t(spec.conv_channels());
    std::vector<SlotState> slots(2);
    slots[0].len = 3;  // the rows behind are drafts
    return {.history = allocate<float>(2 * 8 * channels),
            .history_rows = 8,
            .states = allocate<float>(2 * size_t(spec.shape.state_size())),
            .committed = allocate<int32_t>(2 * size_t(spec.shape.value_heads)),
            .pending = allocate<float>(2 * 4 * size_t(spec.shape.update_size())),
            .pending_rows = 4,
            .slots = to_device(slots)};
  }

  // The rows of one sequence, `cut` of them in a step of their own.
  void run(const LinearMixer& mixer, const float* x, Sum to, int32_t cut = 0) {
    LinearMixer::Scratch scratch;
    scratch.fit(mixer.spec);
    ASSERT_TRUE(scratch.take(scratch_source(kStateRows)).ok());
    const LayerKv kv{.kv = {},
                     .kv_slot = nullptr,
                     .block_tables = nullptr,
                     .max_blocks = 0,
                     .rope = {},
                     .state = state_of(mixer.spec)};
    for (int32_t first = 0, end = cut > 0 ? cut : kStateRows; first < kStateRows;
         first = end, end = kStateRows) {
      std::vector<int32_t> positions;
      for (int32_t i = first; i < end; ++i) positions.push_back(i);
      const LayerRows rows = rows_of(end - first, positions);
      mixer.project(rows, x + size_t(first) * kStateInputs, scratch);
      mixer.attend(rows, kv, scratch);
      mixer.output(rows, scratch, {to.rows + size_t(first) * kStateInputs, to.adds});
    }
    read(to.rows, 1);
  }

  // Channel c of [q | k | v] of the row behind the convolution, whose weights lie as `order` says.
  double convolved(const LinearSpec& spec, const std::vector<Row>& qkv, size_t row, size_t c) {
    const std::string base = spec.base;
    const bool turned = spec.files == LinearFiles::kStep;
    const size_t at = !turned ? c : c < kQ ? kV + kQ + c : c < 2 * kQ ? kV + c - kQ : c - 2 * kQ;
    double sum = spec.conv_bias ? tensors_[base + "conv1d.bias"].values[at] : 0;
    for (size_t j = 0; j < kWidth; ++j) {
      if (row + j + 1 < kWidth) continue;
      sum +=
          tensors_[base + "conv1d.weight"].values[at * kWidth + j] * qkv[row + j + 1 - kWidth][c];
    }
    return silu(sum);
  }

  // What leaves the norm.
  Row gated(const LinearSpec& spec, const Row& left, const Row& z) {
    const auto& weights = tensors_[std::string(spec.base) + "norm.weight"].values;
    const size_t size = kV / size_t(spec.norm_groups);
    Row out = left;
    if (spec.gates_first) {
      for (size_t i = 0; i < kV; ++i) out[i] *= silu(z[i]);
    }
    for (size_t first = 0; first < kV; first += size) {
      double square = 0;
      for (size_t i = first; i < first + size; ++i) square += out[i] * out[i];
      const double norm = std::sqrt(square / double(size) + 1e-5);
      for (size_t i = first; i < first + size; ++i) {
        out[i] *= weights[spec.norm_own_weights ? i : i - first] / norm;
        if (!spec.gates_first) out[i] *= silu(z[i]);
      }
    }
    return out;
  }

  // Decay and scale of a head.
  std::pair<double, double> steps_of(const LinearSpec& spec, const Row& x, size_t head) {
    const std::string base = spec.base;
    const double rate = std::exp(tensors_[base + "A_log"].values[head]);
    const double a = plain_["a"].times(x)[head] + tensors_[base + "dt_bias"].values[head];
    if (spec.gates == LinearGates::kStep) {
      const double step = std::clamp(softplus(a), double(spec.min_step), double(spec.max_step));
      return {std::exp(-rate * step), step};
    }
    return {std::exp(-rate * softplus(a)), sigmoid(plain_["b"].times(x)[head])};
  }

  std::vector<double> expected(const LinearSpec& spec) {
    std::vector<float> numbers(kStateRows * kStateInputs);
    foretoken::fill_random("x", kStateRows * kStateInputs, 0.8f, DType::kF32, numbers.data());
    std::vector<Row> qkv;
    std::vector<Row> states(kValues, Row(kKeyDim * kValueDim, 0));
    std::vector<double> all;
    for (size_t row = 0; row < kStateRows; ++row) {
      const Row x(numbers.begin() + ptrdiff_t(row * kStateInputs),
                  numbers.begin() + ptrdiff_t((row + 1) * kStateInputs));
      qkv.emplace_back();
      for (const char* name : {"q", "k", "v"}) {
        for (const double number : plain_[name].times(x)) qkv.back().push_back(number);
      }
      Row left;
      for (size_t head = 0; head < kValues; ++head) {
        Row q, k;
        for (size_t i = 0; i < kKeyDim; ++i) {
          q.push_back(convolved(spec, qkv, row, head / 2 * kKeyDim + i));
          k.push_back(convolved(spec, qkv, row, kQ + head / 2 * kKeyDim + i));
        }
        for (Row* heads : {&q, &k}) {
          double square = 1e-6;
          for (const double number : *heads) square += number * number;
          for (double& number : *heads) number /= spec.unit ? std::sqrt(square) : 1;
        }
        const auto [decay, scale] = steps_of(spec, x, head);
        for (size_t j = 0; j < kValueDim; ++j) {
          const double v = convolved(spec, qkv, row, 2 * kQ + head * kValueDim + j);
          double known = 0, out = 0;
          for (size_t i = 0; i < kKeyDim; ++i) {
            double& entry = states[head][i * kValueDim + j];
            entry *= decay;
            known += spec.shape.delta ? entry * k[i] : 0;
          }
          for (size_t i = 0; i < kKeyDim; ++i) {
            double& entry = states[head][i * kValueDim + j];
            entry += k[i] * scale * (v - known);
            out += entry * q[i] * double(spec.q_scale);
          }
          if (spec.skip != nullptr) out += tensors_[std::string(spec.base) + "D"].values[head] * v;
          left.push_back(out);
        }
      }
      const Row normed = gated(spec, left, plain_["z"].times(x));
      for (const double sum : tensors_[std::string(spec.base) + "out_proj.weight"].times(normed)) {
        all.push_back(sum);
      }
    }
    return all;
  }

  std::map<std::string, test::RigTensor> plain_;
};

TEST_F(LinearMixerTest, RowsAreThoseOfTheRecurrence) {
  for (const LinearSpec& spec : {delta_spec(LinearFiles::kApart), delta_spec(LinearFiles::kByGroup),
                                 delta_spec(LinearFiles::kJoined), step_spec()}) {
    tensors_.clear();
    fill(spec);
    std::vector<double> first;
    const float* rows = random_rows(kStateRows, kStateInputs, &first);
    float* y = allocate<float>(kStateRows * kStateInputs);
    run(load(spec), rows, {y});
    EXPECT_EQ(unused_, "") << int(spec.files);
    expect_near(y, expected(spec));
    // The second step begins among drafts.
    float* cut = allocate<float>(kStateRows * kStateInputs);
    run(load(spec), rows, {cut}, 4);
    EXPECT_EQ(read(cut, kStateRows * kStateInputs), read(y, kStateRows * kStateInputs))
        << int(spec.files);
  }
}

TEST_F(LinearMixerTest, HeadsOfRanksAddUp) {
  for (const LinearSpec& spec : {delta_spec(LinearFiles::kApart), delta_spec(LinearFiles::kByGroup),
                                 delta_spec(LinearFiles::kJoined), step_spec()}) {
    tensors_.clear();
    fill(spec);
    std::vector<double> first;
    const float* rows = random_rows(kStateRows, kStateInputs, &first);
    float* y = to_device(std::vector<float>(kStateRows * kStateInputs, 0.0f));
    for (const int32_t rank : {0, 1}) {
      const LinearMixer part = load(spec, {rank, 2});
      EXPECT_EQ(part.spec.shape.key_heads, 1);
      EXPECT_EQ(part.spec.shape.value_heads, 2);
      run(part, rows, {y, true});
    }
    expect_near(y, expected(spec));
  }
}

TEST_F(LinearMixerTest, TensorsAreCounted) {
  for (const LinearSpec& spec : {delta_spec(LinearFiles::kApart), delta_spec(LinearFiles::kByGroup),
                                 delta_spec(LinearFiles::kJoined), step_spec()}) {
    tensors_.clear();
    fill(spec);
    const auto listed = layer_tensors({.mixer = spec, .feed_forward = Absent()}, {}, kStateInputs);
    EXPECT_EQ(listed.size(), tensors_.size());
    for (const LayerTensor& tensor : listed) {
      ASSERT_TRUE(tensors_.contains(tensor.name)) << tensor.name;
      EXPECT_EQ(tensor.size(), double(tensors_[tensor.name].values.size())) << tensor.name;
    }
  }
}

}  // namespace
}  // namespace foretoken
