#include "model/layer/feed_forward/experts.h"

#include <algorithm>
#include <cmath>

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

using test::RigTensor;

constexpr int32_t kExpertHidden = 32, kExpertInner = 64, kExperts = 4, kTop = 2;

class ExpertsTest : public test::PartTest {
 protected:
  void SetUp() override {
    PartTest::SetUp();
    config_.hidden_size = kExpertHidden;
    config_.architecture = "TestForCausalLM";
  }

  static ExpertsSpec spec_of(ExpertFiles files = ExpertFiles::kEach) {
    ExpertsSpec spec;
    spec.count = kExperts;
    spec.top_k = kTop;
    spec.inputs = kExpertHidden;
    spec.inner = kExpertInner;
    spec.normalised = true;
    spec.files = files;
    return spec;
  }

  void add_each(const ExpertsSpec& spec) {
    add("layers.0.mlp.gate.weight", {kExperts, kExpertHidden});
    for (int e = 0; e < kExperts; ++e) {
      const std::string base = "layers.0.mlp.experts." + std::to_string(e) + ".";
      add(base + "gate_proj.weight", {kExpertInner, kExpertHidden});
      add(base + "up_proj.weight", {kExpertInner, kExpertHidden});
      add(base + "down_proj.weight", {kExpertHidden, kExpertInner});
    }
    if (spec.shared_inner == 0) return;
    add("layers.0.mlp.shared_experts.gate_proj.weight", {spec.shared_inner, kExpertHidden});
    add("layers.0.mlp.shared_experts.up_proj.weight", {spec.shared_inner, kExpertHidden});
    add("layers.0.mlp.shared_experts.down_proj.weight", {kExpertHidden, spec.shared_inner});
    if (spec.shared_gate != nullptr) add("layers.0.mlp.shared_gate.weight", {1, kExpertHidden});
  }

  // The same matrices as stacks: with gates above ups and as they are, transposed, or apart.
  void stack(ExpertFiles files, bool apart) {
    RigTensor gate_up, down, gates, ups;
    for (int e = 0; e < kExperts; ++e) {
      const std::string base = "layers.0.mlp.experts." + std::to_string(e) + ".";
      RigTensor gate = take(base + "gate_proj.weight"), up = take(base + "up_proj.weight");
      append(gates, gate);
      append(ups, up);
      append(gate, up);
      RigTensor one = take(base + "down_proj.weight");
      if (files == ExpertFiles::kFusedTurned) {
        gate = transposed(gate, 2 * kExpertInner, kExpertHidden);
        one = transposed(one, kExpertHidden, kExpertInner);
      }
      append(gate_up, gate);
      append(down, one);
    }
    const bool turned = files == ExpertFiles::kFusedTurned;
    const std::string base = "layers.0.mlp.experts.";
    if (apart) {
      gates.shape = ups.shape = {kExperts, kExpertInner, kExpertHidden};
      tensors_[base + "gate_proj.weight"] = gates;
      tensors_[base + "up_proj.weight"] = ups;
    } else {
      gate_up.shape = turned ? std::vector<int64_t>{kExperts, kExpertHidden, 2 * kExpertInner}
                             : std::vector<int64_t>{kExperts, 2 * kExpertInner, kExpertHidden};
      tensors_[base + "gate_up_proj"] = gate_up;
    }
    down.shape = turned ? std::vector<int64_t>{kExperts, kExpertInner, kExpertHidden}
                        : std::vector<int64_t>{kExperts, kExpertHidden, kExpertInner};
    tensors_[base + (apart ? "down_proj.weight" : "down_proj")] = down;
  }
  RigTensor take(const std::string& name) {
    RigTensor tensor = tensors_.at(name);
    tensors_.erase(name);
    return tensor;
  }
  static void append(RigTensor& to, const RigTensor& from) {
    to.values.insert(to.values.end(), from.values.begin(), from.values.end());
  }
  static RigTensor transposed(const RigTensor& from, int rows, int cols) {
    RigTensor to = from;
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < cols; ++c) {
        to.values[size_t(c * rows + r)] = from.values[size_t(r * cols + c)];
      }
    }
    return to;
  }

  // The matrix `name`, with its bias where there is one.
  std::vector<double> product(const std::string& name, const std::vector<double>& x) {
    std::vector<double> y = tensors_.at(name + ".weight").times(x);
    const auto bias = tensors_.find(name + ".bias");
    if (bias == tensors_.end()) return y;
    for (size_t i = 0; i < y.size(); ++i) y[i] += double(bias->second.values[i]);
    return y;
  }
  std::vector<double> gated(const std::string& base, const std::vector<double>& x) {
    std::vector<double> inner = product(base + "gate_proj", x);
    const std::vector<double> ups = product(base + "up_proj", x);
    for (size_t i = 0; i < inner.size(); ++i)
      inner[i] = inner[i] / (1 + std::exp(-inner[i])) * ups[i];
    return product(base + "down_proj", inner);
  }

  // What the mixture adds for a row, by the matrices of add_each.
  std::vector<double> expected(const ExpertsSpec& spec, const std::vector<double>& x) {
    std::vector<double> logits = product("layers.0.mlp.gate", x);
    std::vector<size_t> order = {0, 1, 2, 3};
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    const double second = 1 / (1 + std::exp(logits[order[0]] - logits[order[1]]));
    std::vector<double> sum(kExpertHidden, 0.0);
    for (const size_t slot : {size_t{0}, size_t{1}}) {
      const std::string base = "layers.0.mlp.experts." + std::to_string(order[slot]) + ".";
      double weight = slot == 0 ? 1 - second : second;
      if (spec.score == ExpertScore::kSigmoid) weight = 1 / (1 + std::exp(-logits[order[slot]]));
      std::vector<double> in = x;
      if (spec.weighs_input) {
        for (double& value : in) value *= weight;
      }
      const auto out = gated(base, in);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += (spec.weighs_input ? 1 : weight) * out[i];
    }
    if (spec.shared_inner == 0) return sum;
    const std::string base = "layers.0.mlp.shared_experts.";
    const auto out = gated(base, x);
    double share = 1;
    if (spec.shared_gate != nullptr) {
      share = 1 / (1 + std::exp(-tensors_["layers.0.mlp.shared_gate.weight"].times(x)[0]));
    }
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += share * out[i];
    return sum;
  }

  Experts load(const ExpertsSpec& spec, const Sharding& sharding = {}) {
    return load_part<Experts>(
        [&](PartLoader& loader, Experts* out) { return out->load(loader, "layers.0.", spec); }, {},
        sharding);
  }

  void run(const Experts& experts, const float* x, Sum to) {
    Experts::Scratch scratch;
    scratch.fit(experts.spec);
    ASSERT_TRUE(scratch.take(scratch_source(3)).ok());
    const LayerRows rows = rows_of(3);
    experts.expand(rows, x, scratch);
    experts.output(rows, scratch, to);
    read(to.rows, 1);
  }

  static Sharding sharding_of(int32_t rank, int32_t ranks, bool dealt) {
    return {rank, ranks, nullptr, dealt ? ExpertRanks{rank, ranks} : ExpertRanks{}};
  }

  // What ranks add up to for the first of three rows, whether experts are cut or dealt out.
  void expect_sum(const ExpertsSpec& spec, const std::vector<double>& wanted, const float* x) {
    for (const int32_t ranks : {1, 2}) {
      for (const bool dealt : {false, true}) {
        float* y = to_device(std::vector<float>(3 * kExpertHidden, 0.0f));
        for (int32_t rank = 0; rank < ranks; ++rank) {
          run(load(spec, sharding_of(rank, ranks, dealt)), x, {y, true});
          EXPECT_EQ(unused_, "");
        }
        expect_near(y, wanted, 3e-5);
      }
    }
    float* y = allocate<float>(3 * kExpertHidden);
    run(load(spec), x, {y});
    expect_near(y, wanted, 3e-5);
  }
};

TEST_F(ExpertsTest, PartsOfRanksAddUp) {
  ExpertsSpec spec = spec_of();
  std::vector<double> x;
  const float* rows = random_rows(3, kExpertHidden, &x);
  add_each(spec);
  expect_sum(spec, expected(spec, x), rows);
  spec.shared_inner = 32;
  add_each(spec);
  expect_sum(spec, expected(spec, x), rows);
  spec.shared_gate = "shared_gate";
  add_each(spec);
  expect_sum(spec, expected(spec, x), rows);
}

// Files that have all experts in one tensor, whatever they are laid out as.
TEST_F(ExpertsTest, StacksAreTheSame) {
  std::vector<double> x;
  const float* rows = random_rows(3, kExpertHidden, &x);
  const struct {
    ExpertFiles spec, file;
    bool apart;
  } cases[] = {{ExpertFiles::kFused, ExpertFiles::kFused, false},
               {ExpertFiles::kFusedTurned, ExpertFiles::kFusedTurned, false},
               {ExpertFiles::kFusedTurned, ExpertFiles::kFused, false},
               {ExpertFiles::kEach, ExpertFiles::kFused, false},
               {ExpertFiles::kEach, ExpertFiles::kFused, true}};
  for (const auto& one : cases) {
    const ExpertsSpec spec = spec_of(one.spec);
    tensors_.clear();
    add_each(spec);
    const auto wanted = expected(spec, x);
    stack(one.file, one.apart);
    expect_sum(spec, wanted, rows);
  }
}

// Tools that quantise put experts apart, with biases too, whatever the family's own files do.
TEST_F(ExpertsTest, ApartTheyAreTheSameForEveryFamily) {
  std::vector<double> x;
  const float* rows = random_rows(3, kExpertHidden, &x);
  for (const bool biased : {false, true}) {
    tensors_.clear();
    add_each(spec_of());
    if (biased) add("layers.0.mlp.gate.bias", {kExperts});
    for (int e = 0; biased && e < kExperts; ++e) {
      const std::string base = "layers.0.mlp.experts." + std::to_string(e) + ".";
      add(base + "gate_proj.bias", {kExpertInner});
      add(base + "up_proj.bias", {kExpertInner});
      add(base + "down_proj.bias", {kExpertHidden});
    }
    const auto wanted = expected(spec_of(), x);
    for (const ExpertFiles files : {ExpertFiles::kFused, ExpertFiles::kFusedTurned}) {
      ExpertsSpec spec = spec_of(files);
      spec.biased = biased;
      expect_sum(spec, wanted, rows);
      spec.experts = "";  // as Granite's, where tensors of its own names would follow
      spec.gate_up = "input_linear.weight";
      spec.down = "output_linear.weight";
      expect_sum(spec, wanted, rows);
    }
    ExpertsSpec named = spec_of();  // as Mixtral's
    named.biased = biased;
    named.gate = "w1";
    named.up = "w3";
    named.down = "w2";
    expect_sum(named, wanted, rows);
  }
}

// Llama 4's.
TEST_F(ExpertsTest, WeightsMayMultiplyWhatGoesIn) {
  ExpertsSpec spec = spec_of();
  spec.score = ExpertScore::kSigmoid;
  spec.normalised = false;
  spec.weighs_input = true;
  spec.shared_inner = 32;
  std::vector<double> x;
  const float* rows = random_rows(3, kExpertHidden, &x);
  add_each(spec);
  expect_sum(spec, expected(spec, x), rows);
}

// Three ranks share four experts; what one rank does not have must be in the files all the same.
TEST_F(ExpertsTest, RanksHaveWholeExperts) {
  const ExpertsSpec spec = spec_of();
  add_each(spec);
  std::vector<double> x;
  const float* rows = random_rows(3, kExpertHidden, &x);
  const std::vector<double> wanted = expected(spec, x);
  float* y = to_device(std::vector<float>(3 * kExpertHidden, 0.0f));
  const int32_t counts[] = {1, 1, 2};
  for (int32_t rank = 0; rank < 3; ++rank) {
    const Experts experts = load(spec, {.experts = {rank, 3}});
    EXPECT_EQ(experts.own.count, counts[rank]);
    EXPECT_EQ(experts.spec.inner, kExpertInner);
    run(experts, rows, {y, true});
  }
  expect_near(y, wanted, 3e-5);
}

// One sentence for what is missing or does not fit.
TEST_F(ExpertsTest, WhatIsWrongIsNamed) {
  const auto message = [&](const ExpertsSpec& spec, const Sharding& sharding = {}) {
    std::string text;
    Experts experts;  // stays until what was begun is loaded
    load_part<Absent>(
        [&](PartLoader& loader, Absent*) {
          text = experts.load(loader, "layers.0.", spec).message();
          return Status();
        },
        {}, sharding);
    return text;
  };
  add_each(spec_of());
  EXPECT_NE(message(spec_of(), {0, 4}).find("experts of 16 x 32 (of a rank) are not supported"),
            std::string::npos);
  ExpertsSpec spec = spec_of();
  spec.inner = 80;
  EXPECT_NE(message(spec).find("multiples of 32"), std::string::npos);
  spec = spec_of();
  spec.count = 5;
  EXPECT_NE(message(spec).find("layers.0.mlp.gate.weight' has shape [4, 32]"), std::string::npos);
  take("layers.0.mlp.experts.3.up_proj.weight");
  for (const Sharding& sharding : {Sharding{}, sharding_of(0, 2, true)}) {
    EXPECT_NE(
        message(spec_of(), sharding).find("'layers.0.mlp.experts.3.up_proj.weight' is missing"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace foretoken
