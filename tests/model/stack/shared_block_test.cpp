#include "model/stack/shared_block.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int32_t kSharedRows = 2;
constexpr int32_t kSharedInner = 6;

using SharedRow = std::vector<double>;

SharedRow normed(const SharedRow& x, const test::RigTensor& weight) {
  double square = 0;
  for (const double value : x) square += value * value / static_cast<double>(x.size());
  SharedRow out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    out[i] = x[i] / std::sqrt(square + 1e-5) * weight.values[i];
  }
  return out;
}

double exact_gelu(double x) { return x * (1 + std::erf(x / std::sqrt(2.0))) / 2; }

class SharedBlockTest : public test::PartTest {
 protected:
  void SetUp() override {
    test::PartTest::SetUp();
    const std::string shared = "layers.1.shared_transformer.";
    add(shared + "input_layernorm.weight", {16});
    add(shared + "pre_ff_layernorm.weight", {8});
    for (const char* part : {"q", "k", "v"}) {
      const std::string name = shared + "self_attn.linear_" + part + "_adapter_list.1.";
      add(name + "0.weight", {3, 16});
      add(name + "1.weight", {16, 3});
    }
    add(shared + "feed_forward.gate_up_proj.weight", {2 * kSharedInner, 8});
    add(shared + "feed_forward.down_proj.weight", {8, kSharedInner});
    add(shared + "feed_forward.gate_up_proj_adapter_list.1.0.weight", {3, 8});
    add(shared + "feed_forward.gate_up_proj_adapter_list.1.1.weight", {2 * kSharedInner, 3});
    add("layers.4.linear.weight", {8, 8});
    add("layers.4.mamba_decoder.input_layernorm.weight", {8});
  }

  const test::RigTensor& shared(const std::string& name) {
    return tensors_.at("layers.1.shared_transformer." + name + ".weight");
  }

  SharedBlock load() {
    auto block = load_part<SharedBlock>([](PartLoader& loader, SharedBlock* out) {
      SharedSpec spec;
      spec.from = 1;
      spec.use = 1;
      spec.rank = 3;
      spec.adapts_attention = true;
      spec.num_heads = 4;
      spec.head_dim = 4;
      spec.inner = kSharedInner;
      return out->load(loader, "layers.4.", spec);
    });
    EXPECT_EQ(unused_, "");
    EXPECT_TRUE(block.exists());
    scratch_.fit(block);
    EXPECT_TRUE(scratch_.take(scratch_source(kSharedRows)).ok());
    return block;
  }

  SharedBlock::Scratch scratch_;
};

TEST_F(SharedBlockTest, TakesWhatLayersHaveInCommonFromTheFirst) {
  std::vector<std::string> bases;
  load_part<int>([&](PartLoader& loader, int*) {
    SharedSpec spec;
    EXPECT_FALSE(spec.exists());
    spec.from = 1;
    bases = {shared_base(loader, "layers.23.", spec), shared_base(loader, "layers.1.", spec)};
    loader.weights().ignore_all("layers.");
    return Status();
  });
  EXPECT_EQ(bases, (std::vector<std::string>{"layers.1.", "layers.1."}));
}

TEST_F(SharedBlockTest, ReadsTheEmbeddingBesideTheRowAndAdaptsWhatIsMadeOfIt) {
  const SharedBlock block = load();
  const LayerRows rows = rows_of(kSharedRows);
  SharedRow first, embedding;
  const float* residual = random_rows(kSharedRows, 8, &first);
  std::vector<float> other = read(residual, kSharedRows * 8);
  for (float& value : other) value = 1 - 2 * value;
  embedding.assign(other.begin(), other.begin() + 8);
  SharedBlock::keep_embeddings(rows, to_device(other), 8, scratch_);
  block.widen(rows, residual, {8, 1e-5f}, scratch_, DType::kF32);
  SharedRow both = first;
  both.insert(both.end(), embedding.begin(), embedding.end());
  both = normed(both, shared("input_layernorm"));
  expect_near(static_cast<const float*>(scratch_.wide), both);

  float* qkv = to_device(std::vector<float>(kSharedRows * 48, 0.5f));
  block.adapt_attention(rows, qkv, scratch_, DType::kF32);
  SharedRow wanted;
  for (const char* part : {"q", "k", "v"}) {
    const std::string name = std::string("self_attn.linear_") + part + "_adapter_list.1.";
    for (const double value : shared(name + "1").times(shared(name + "0").times(both))) {
      wanted.push_back(0.5 + value);
    }
  }
  expect_near(qkv, wanted);
}

TEST_F(SharedBlockTest, AdaptsGatesAndUps) {
  const SharedBlock block = load();
  SharedRow x;
  const float* entering = random_rows(kSharedRows, 8, &x);
  float* out = to_device(std::vector<float>(kSharedRows * 8));
  block.run_mlp(rows_of(kSharedRows), entering, out, scratch_, DType::kF32);
  SharedRow both = shared("feed_forward.gate_up_proj").times(x);
  const SharedRow added = shared("feed_forward.gate_up_proj_adapter_list.1.1")
                              .times(shared("feed_forward.gate_up_proj_adapter_list.1.0").times(x));
  for (size_t i = 0; i < both.size(); ++i) both[i] += added[i];
  SharedRow met(kSharedInner);
  for (size_t i = 0; i < met.size(); ++i) met[i] = exact_gelu(both[i]) * both[i + kSharedInner];
  expect_near(out, shared("feed_forward.down_proj").times(met));
}

}  // namespace
}  // namespace foretoken
