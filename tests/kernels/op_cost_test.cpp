#include "kernels/op_cost.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/layer_tail.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/rms_norm.h"
#include "kernels/sampling/sample.h"

namespace foretoken {
namespace {

TEST(OpCost, EveryOpHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(Op::kCount); ++i) {
    const std::string name = op_name(static_cast<Op>(i));
    EXPECT_NE(name, "?") << i;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(OpCost, ProductsReadTheirWeightOnceForAllLiveRows) {
  GemmArgs args{};
  StepCounts counts{};
  args.counts = &counts;
  args.row_kind = RowKind::kLogits;
  args.row_offset = 2;
  args.max_rows = 8;
  args.n = 30;
  args.k = 20;
  args.dtype = DType::kBF16;
  args.out_dtype = DType::kF32;
  EXPECT_EQ(live_rows_place(Op::kGemm, &args).counts, &counts);
  const OpCost cost = op_cost(Op::kGemm, &args, {.counts = {9, 7, 1, 0}});
  EXPECT_EQ(cost.weight_bytes, 30 * 20 * 2);
  EXPECT_EQ(cost.row_bytes, 5 * (20 * 2 + 30 * 4));
  EXPECT_EQ(cost.flops, 2 * 5 * 30 * 20);
  EXPECT_EQ(op_cost(Op::kGemm, &args, {.counts = {9, 1, 1, 0}}).flops, 0) << "no row is live";
  EXPECT_EQ(op_cost(Op::kGemm, &args, {.counts = {99, 99, 1, 0}}).flops, 2 * 8 * 30 * 20);
  EXPECT_EQ(op_shape(Op::kGemm, &args), "30 x 20");
  args.add = 1;
  EXPECT_EQ(op_cost(Op::kGemm, &args, {.counts = {9, 7, 1, 0}}).row_bytes,
            5 * (20 * 2 + 2 * 30 * 4));
  EXPECT_EQ(op_shape(Op::kGemm, &args), "30 x 20, adds");
  args.add = 0;
  args.gated = 1;
  args.out_dtype = DType::kBF16;
  EXPECT_EQ(op_cost(Op::kGemm, &args, {.counts = {9, 7, 1, 0}}).row_bytes, 5 * (20 + 15) * 2);
  EXPECT_EQ(op_shape(Op::kGemm, &args), "30 x 20, gated");
}

TEST(OpCost, QuantisedWeightsCountAsTheyLie) {
  GemmArgs args{};
  args.n = 30;
  args.k = 64;
  args.max_rows = 8;
  args.dtype = DType::kBF16;
  args.weight = &args;
  const LiveRows live{.counts = {2, 2, 1, 0}, .weight_bytes = 30 * 36};
  const OpCost cost = op_cost(Op::kGemm, &args, live);
  EXPECT_EQ(cost.weight_bytes, 30 * 36);
  EXPECT_EQ(cost.flops, 2 * 2 * 30 * 64);
  EXPECT_EQ(op_weights(Op::kGemm, &args), std::vector<const void*>{&args});
  EXPECT_TRUE(op_weights(Op::kVerifyAndCommit, nullptr).empty());
  EXPECT_EQ(op_shape(Op::kGemm, &args, live.weight_bytes), "30 x 64, 4.5 bits");
}

TEST(OpCost, ATailCostsWhatItsOpsCost) {
  LayerTailArgs args{};
  args.qkv = &args;
  args.max_rows = 4;
  args.hidden = 64;
  args.x_size = 32;
  args.inner = 96;
  args.qkv_size = 48;
  args.dtype = DType::kBF16;
  const LayerTailOps ops = layer_tail_ops(args);
  const LiveRows live{.counts = {3, 3, 1, 0}};
  OpCost sum = op_cost(Op::kGemm, &ops.o, live);
  sum += op_cost(Op::kRmsNorm, &ops.mlp_norm, live);
  sum += op_cost(Op::kGemm, &ops.gate_up, live);
  sum += op_cost(Op::kGemm, &ops.down, live);
  EXPECT_EQ(op_weights(Op::kLayerTail, &args).size(), 4u);
  LayerTailArgs last = args;
  last.qkv = nullptr;
  EXPECT_EQ(op_cost(Op::kLayerTail, &last, live), sum);
  EXPECT_EQ(op_weights(Op::kLayerTail, &last).size(), 3u);
  sum += op_cost(Op::kRmsNorm, &ops.next_norm, live);
  sum += op_cost(Op::kGemm, &ops.qkv, live);
  EXPECT_EQ(op_cost(Op::kLayerTail, &args, live), sum);
  EXPECT_EQ(op_shape(Op::kLayerTail, &args), "64 x 32, 192 x 64, 64 x 96, 48 x 64");
  LiveRows quantised = live;
  quantised.weight_bytes = 1000;
  EXPECT_EQ(op_cost(Op::kLayerTail, &args, quantised).weight_bytes,
            sum.weight_bytes - 2 * 64 * (32 + 3 * 96 + 48) + 1000);
}

AttentionArgs attention_args() {
  AttentionArgs args{};
  args.kv.num_kv_heads = 2;
  args.kv.head_dim = 16;
  args.kv.dtype = DType::kBF16;
  args.num_heads = 8;
  args.max_rows = 16;
  return args;
}

// Slot 0 has one row at position 9; slot 3 has rows at 4, 5, 6.
LiveRows four_rows() {
  return {.counts = {4, 4, 2, 0}, .positions = {9, 4, 5, 6}, .row_slot = {0, 3, 3, 3}};
}

TEST(OpCost, ANormWithTheEmbeddingIsWrittenToo) {
  EmbedArgs args{};
  args.max_rows = 4;
  args.hidden = 10;
  args.dtype = args.table.dtype = DType::kBF16;
  EXPECT_EQ(op_cost(Op::kEmbed, &args, four_rows()).row_bytes, 4 * 10 * (2 + 4));
  const float weight[10] = {};
  args.norm_weight = weight;
  const OpCost cost = op_cost(Op::kEmbed, &args, four_rows());
  EXPECT_EQ(cost.row_bytes, 4 * 10 * (2 + 2 + 4));
  EXPECT_EQ(cost.weight_bytes, 10 * 4);
  EXPECT_EQ(op_shape(Op::kEmbed, &args), "10, norms");
}

TEST(OpCost, RowsOfOneSequenceShareItsKeysAndValues) {
  const AttentionArgs args = attention_args();
  const OpCost cost = op_cost(Op::kAttention, &args, four_rows());
  EXPECT_EQ(cost.kv_bytes, (10 + 7) * 2 * 2 * 16 * 2);
  EXPECT_EQ(cost.row_bytes, 2 * 4 * 8 * 16 * 2);
  EXPECT_EQ(cost.flops, int64_t{4} * (10 + 5 + 6 + 7) * 8 * 16);
}

TEST(OpCost, AWindowLimitsWhatIsRead) {
  AttentionArgs args = attention_args();
  args.window = 3;
  const OpCost cost = op_cost(Op::kAttention, &args, four_rows());
  EXPECT_EQ(cost.kv_bytes, (3 + 5) * 2 * 2 * 16 * 2);
  EXPECT_EQ(cost.flops, int64_t{4} * (4 * 3) * 8 * 16);
}

TEST(OpCost, LatentsAreReadOnce) {
  AttentionArgs args = attention_args();
  args.kv.num_kv_heads = 1;
  args.kv.value_dim = 12;
  const OpCost cost = op_cost(Op::kAttention, &args, four_rows());
  EXPECT_EQ(cost.kv_bytes, (10 + 7) * 16 * 2);
  EXPECT_EQ(cost.row_bytes, 4 * 8 * (16 + 12) * 2);
  EXPECT_EQ(cost.flops, int64_t{2} * (10 + 5 + 6 + 7) * 8 * (16 + 12));
}

TEST(OpCost, SumsAndOpsWithoutCost) {
  RmsNormArgs norm{};
  norm.max_rows = 4;
  norm.hidden = 10;
  norm.out_dtype = DType::kBF16;
  const float delta = 0, weight = 1;
  norm.weight = &weight;
  const LiveRows live{.counts = {3, 1, 1, 0}};
  OpCost sum = op_cost(Op::kRmsNorm, &norm, live);
  EXPECT_EQ(sum.bytes(), 10 * 4 + 3 * 10 * (4 + 2));
  norm.delta = &delta;
  sum += op_cost(Op::kRmsNorm, &norm, live);
  EXPECT_EQ(sum.bytes(), 2 * 10 * 4 + 3 * 10 * (4 + 2) + 3 * 10 * (12 + 2));
  SampleArgs sample{};
  sample.max_rows = 4;
  sample.vocab = 100;
  EXPECT_EQ(op_cost(Op::kSample, &sample, live).bytes(), 400);
  EXPECT_EQ(op_cost(Op::kVerifyAndCommit, nullptr, live).bytes(), 0);
  EXPECT_EQ(live_rows_place(Op::kVerifyAndCommit, nullptr).counts, nullptr);
  EXPECT_FALSE(op_repeats(Op::kPublish));
  EXPECT_TRUE(op_repeats(Op::kGemm));
}

}  // namespace
}  // namespace foretoken
