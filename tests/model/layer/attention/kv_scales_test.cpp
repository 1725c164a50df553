#include "model/layer/attention/kv_scales.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

class KvScalesTest : public test::PartTest {
 protected:
  void add_scales(const std::string& name, std::vector<float> values) {
    tensors_[name] = {{static_cast<int64_t>(values.size())}, std::move(values)};
  }
  KvScales load(int32_t heads, const Sharding& sharding = {}) {
    return load_part<KvScales>(
        [&](PartLoader& loader, KvScales* out) {
          return load_kv_scales(loader, "attn.", heads, out);
        },
        {}, sharding);
  }
  std::string message_of(int32_t heads) {
    std::string message;
    load_part<KvScales>([&](PartLoader& loader, KvScales* out) {
      message = load_kv_scales(loader, "attn.", heads, out).message();
      return Status();
    });
    return message;
  }
};

TEST_F(KvScalesTest, ThereMayBeNone) {
  add("norm.weight", {8});
  const KvScales scales = load(2);
  EXPECT_EQ(scales.keys, nullptr);
  EXPECT_EQ(scales.values, nullptr);
  EXPECT_NE(unused_.find("norm.weight"), std::string::npos);
}

TEST_F(KvScalesTest, ANumberIsThatOfAllHeads) {
  tensors_["attn.k_proj.k_scale"] = {{}, {0.5f}};
  add_scales("attn.v_proj.v_scale", {0.25f});
  const KvScales scales = load(3);
  EXPECT_EQ(unused_, "");
  EXPECT_EQ(read(scales.keys, 3), (std::vector<float>{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(read(scales.values, 3), (std::vector<float>{0.25f, 0.25f, 0.25f}));
}

TEST_F(KvScalesTest, RanksHaveThoseOfTheirHeads) {
  tensors_["attn.k_scale"] = {{4, 1, 1}, {1, 2, 3, 4}};
  tensors_["attn.v_scale"] = {{1, 4}, {5, 6, 7, 8}};
  add_scales("attn.q_scale", {9});
  add_scales("attn.prob_output_scale", {9});
  const KvScales second = load(4, {1, 2});
  EXPECT_EQ(unused_, "") << "scales of queries are known too";
  EXPECT_EQ(read(second.keys, 2), (std::vector<float>{3, 4}));
  EXPECT_EQ(read(second.values, 2), (std::vector<float>{7, 8}));
  const KvScales last = load(4, {7, 8});
  EXPECT_EQ(read(last.keys, 1), (std::vector<float>{4})) << "two ranks share a head";
}

TEST_F(KvScalesTest, OneAloneIsThatOfKeysAndValues) {
  for (const char* name : {"attn.kv_scale", "attn.k_proj.output_scale", "attn.v_scale"}) {
    tensors_.clear();
    add_scales(name, {0.125f});
    const KvScales scales = load(1);
    EXPECT_EQ(unused_, "");
    EXPECT_EQ(read(scales.keys, 1), (std::vector<float>{0.125f})) << name;
    EXPECT_EQ(scales.values, scales.keys);
  }
}

TEST_F(KvScalesTest, BadOnesAreNamed) {
  add_scales("attn.k_scale", {1, 2, 3});
  EXPECT_EQ(message_of(2),
            "tensor 'attn.k_scale' has 3 scales of an FP8 KV cache, but the layer has 2 heads of "
            "keys and values; it must have one for each, or one");
  for (const float bad : {0.0f, -1.0f, std::nanf(""), INFINITY, 1e-42f}) {
    add_scales("attn.k_scale", {1, bad});
    EXPECT_NE(message_of(2).find("must be positive"), std::string::npos) << bad;
  }
}

TEST_F(KvScalesTest, ThoseOfEntriesLessABiasAreLeftAside) {
  add_scales("attn.k_proj.k_scale", {0.5f});
  add_scales("attn.v_proj.v_scale", {0.5f});
  tensors_["attn.k_proj.k_bias"] = {{1, 1, 1, 2}, {1, 2}};
  tensors_["attn.v_proj.v_bias"] = {{1, 1, 1, 2}, {1, 2}};
  const KvScales scales = load(1);
  EXPECT_EQ(scales.keys, nullptr);
  EXPECT_EQ(scales.values, nullptr);
  EXPECT_EQ(unused_, "");
}

TEST(KvScales, AreOfCodesAlone) {
  const float ones[] = {1};
  const KvScales scales{ones, ones};
  KvLayer kv{};
  EXPECT_EQ(scales.of(kv).k_scales, nullptr);
  kv.format = KvFormat::kInt8;
  EXPECT_EQ(scales.of(kv).v_scales, nullptr);
  kv.format = KvFormat::kFp8;
  EXPECT_EQ(scales.of(kv).k_scales, ones);
  EXPECT_EQ(scales.of(kv).v_scales, ones);
}

}  // namespace
}  // namespace foretoken
