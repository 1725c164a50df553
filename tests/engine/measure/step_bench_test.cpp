#include "engine/measure/step_bench.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>

#include "base/clock.h"
#include "engine/dialled_engine.h"
#include "engine/engine_parts.h"
#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm.h"
#include "support/folders.h"

namespace foretoken {
namespace {

class StepBenchTest : public DialledEngine {
 protected:
  void SetUp() override { open(folder()); }
  void TearDown() override { bench_.reset(); }

  void open(const std::string& model_folder) {
    bench_.reset();
    auto made = EngineParts::make(model_folder, 0);
    ASSERT_TRUE(made.ok()) << made.status().message();
    parts_ = std::move(made).value();
    bench_ = std::make_unique<StepBench>(StepBenchParts{
        .device = *parts_->device,
        .queue = *parts_->queue,
        .model = *parts_->model,
        .caches = {parts_->kv_cache.get(), nullptr},
        .runner = *parts_->runner,
        .memory = *parts_->memory,
        .max_len = EngineParts::kMaxLen,
        .max_rows = EngineParts::kMaxRows,
        .max_logits_rows = EngineParts::kMaxRows,
        .num_blocks = EngineParts::kNumSlots * EngineParts::kMaxLen / EngineParts::kBlockSize + 1});
  }

  // Of the first op of a kind.
  Result<OpCost> cost_of_first(Op op, bool with_logits) {
    for (const ListedOp& listed : bench_->forward_ops(with_logits)) {
      if (listed.op == static_cast<uint16_t>(op)) return bench_->cost({listed});
    }
    return not_found("no such op");
  }
  std::string error_of(const std::vector<MadeUpSequence>& sequences) {
    return bench_->upload(sequences).message();
  }

  std::unique_ptr<EngineParts> parts_;
  std::unique_ptr<StepBench> bench_;
};

TEST_F(StepBenchTest, StagesTheRowsThatWereAskedFor) {
  const ModelConfig& model = parts_->model->config();
  ASSERT_TRUE(bench_->upload({{100, 3}, {40, 1}}).ok());
  const auto attention = cost_of_first(Op::kAttention, false);
  ASSERT_TRUE(attention.ok()) << attention.status().message();
  const int64_t q = int64_t{model.num_heads} * model.head_dim;
  const int64_t kv =
      int64_t{2} * model.num_kv_heads * model.head_dim * int64_t(dtype_size(model.dtype));
  EXPECT_EQ(attention.value().kv_bytes, (103 + 41) * kv);
  EXPECT_EQ(attention.value().flops, 4 * (101 + 102 + 103 + 41) * q);

  ASSERT_TRUE(bench_->upload({{16, 32}}).ok()) << "a prompt's chunk";
  const auto prompt = cost_of_first(Op::kAttention, false);
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_EQ(prompt.value().kv_bytes, 48 * kv);
}

// A mixture takes rows that are equal to the same experts.
TEST_F(StepBenchTest, RowsHaveIdsOfTheirOwn) {
  const auto num_different = [&](const std::vector<MadeUpSequence>& sequences, size_t num_rows) {
    EXPECT_TRUE(bench_->upload(sequences).ok());
    std::vector<int32_t> ids(num_rows);
    parts_->queue->copy(ids.data(), parts_->memory->tensors.token_ids, num_rows * sizeof(int32_t));
    EXPECT_TRUE(parts_->queue->drain().ok());
    return std::set<int32_t>(ids.begin(), ids.end()).size();
  };
  EXPECT_EQ(num_different({{100, 3}, {40, 1}}, 4), 4u) << "known tokens and drafts";
  EXPECT_GE(num_different({{16, 32}}, 32), 30u) << "a prompt's chunk";
}

TEST_F(StepBenchTest, LogitsAreOfRowsThatSample) {
  const ModelConfig& model = parts_->model->config();
  const int64_t head = int64_t{2} * model.vocab_size * model.hidden_size;
  const auto head_flops = [&](const std::vector<MadeUpSequence>& sequences) {
    EXPECT_TRUE(bench_->upload(sequences).ok());
    const auto with = bench_->cost(bench_->forward_ops(true));
    const auto without = bench_->cost(bench_->forward_ops(false));
    return with.value().flops - without.value().flops;
  };
  EXPECT_EQ(head_flops({{10, 1}, {10, 4}}), 5 * head);
  EXPECT_EQ(head_flops({{10, 30}}), head);
}

TEST_F(StepBenchTest, TimesBothWays) {
  ASSERT_TRUE(bench_->upload({{30, 1}, {30, 2}}).ok());
  const std::vector<ListedOp> ops = bench_->forward_ops(true);
  for (const bool graph : {true, false}) {
    const int64_t begin = now_ns();
    const Result<double> ns = bench_->time_ns(ops, graph, 0.01);
    ASSERT_TRUE(ns.ok()) << ns.status().message();
    EXPECT_GT(ns.value(), 100);
    EXPECT_LT(ns.value(), static_cast<double>(now_ns() - begin));
  }
}

TEST_F(StepBenchTest, EachKindOfOpIsTimedByItself) {
  const ModelConfig& model = parts_->model->config();
  ASSERT_TRUE(bench_->upload({{30, 1}, {30, 2}}).ok());
  const std::vector<ListedOp> ops = bench_->step_ops();
  const int64_t begin = now_ns();
  const auto times = bench_->op_times(ops, 0.002);
  const auto elapsed = static_cast<double>(now_ns() - begin);
  ASSERT_TRUE(times.ok()) << times.status().message();
  int count = 0;
  OpCost sum;
  for (const OpTime& time : times.value()) {
    count += time.count;
    for (int i = 0; i < time.count; ++i) sum += time.cost;
    if (time.cost.bytes() > 0) {
      EXPECT_GT(time.ns, 1) << time.name;
    }
    EXPECT_GE(time.ns, 0) << time.name;
    EXPECT_LT(time.ns, elapsed) << time.name;
    EXPECT_LT(time.in_step_ns, elapsed) << time.name;
    if (time.name != "attention") continue;
    EXPECT_EQ(time.count, model.num_layers);
    EXPECT_GT(time.in_step_ns, 0);
  }
  EXPECT_EQ(count, static_cast<int>(ops.size()));
  EXPECT_EQ(sum, bench_->cost(ops).value());
  EXPECT_EQ(times.value().front().name, "upload");
  EXPECT_TRUE(std::any_of(times.value().begin(), times.value().end(),
                          [](const OpTime& time) { return time.name == "publish"; }));
}

TEST_F(StepBenchTest, WholeStepsRunOnFreshStates) {
  ASSERT_TRUE(bench_->upload({{30, 1}, {30, 3}}).ok());
  const std::vector<ListedOp> ops = bench_->step_ops();
  const uint64_t before = parts_->memory->published.word->load();
  const Result<double> step = bench_->step_ns(ops);
  ASSERT_TRUE(step.ok()) << step.status().message();
  EXPECT_GT(step.value(), 1000);
  const uint64_t steps = parts_->memory->published.word->load() - before;
  EXPECT_GT(steps, 10u);
  const ResultView result = parts_->runner->result(before + steps - 1);
  EXPECT_EQ(result.header->num_rows, 4) << "as the first one";
  EXPECT_EQ(result.spans[1].num_drafted, 2);
}

TEST_F(StepBenchTest, ExpertsThatRowsTouchAreCounted) {
  ASSERT_TRUE(bench_->upload({{8, 1}}).ok());
  const auto none = bench_->touched_experts(bench_->step_ops());
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none.value().mixtures, 0);

  open(std::string(foretoken::kSourceFolder) + "/models/foretoken-2m-deepseek");
  ASSERT_TRUE(bench_->upload({{8, 1}}).ok());
  const auto one = bench_->touched_experts(bench_->step_ops());
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(one.value().mixtures, 3);
  EXPECT_EQ(one.value().count, 8);
  EXPECT_EQ(one.value().touched, 2);
  EXPECT_EQ(one.value().expected, 2);
  ASSERT_TRUE(bench_->upload({{8, 32}}).ok());
  const auto many = bench_->touched_experts(bench_->step_ops());
  ASSERT_TRUE(many.ok()) << many.status().message();
  EXPECT_GT(many.value().touched, 4);
  EXPECT_NEAR(many.value().expected, 8, 0.01);
}

TEST_F(StepBenchTest, WhatDoesNotFitIsRefused) {
  for (const MadeUpSequence& longer : {MadeUpSequence{250, 7}, MadeUpSequence{INT32_MAX, 2}}) {
    EXPECT_NE(error_of({longer}).find("max_model_len"), std::string::npos);
  }
  EXPECT_NE(error_of(std::vector<MadeUpSequence>(5)).find("max_num_seqs"), std::string::npos);
  EXPECT_NE(error_of({{0, 49}}).find("max_num_batched_tokens"), std::string::npos);
  EXPECT_EQ(error_of({{200, 17}, {239, 17}}), "");
}

}  // namespace
}  // namespace foretoken
