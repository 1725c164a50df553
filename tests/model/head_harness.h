#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "model/draft_head.h"
#include "model/forward_harness.h"

namespace foretoken::test {

// A pass of a head: rows of one or more sequences.
struct HeadRow {
  int32_t slot;
  int32_t position;
  int32_t id;
  int32_t source;  // row of DraftHead::Source::rows
};

// Runs a target with its tap, and a head over the target's blocks, as a drafter would. Slots are
// those of the target's harness.
class HeadHarness {
 public:
  HeadHarness(Model& target, DraftHead& head, int32_t max_rows, int32_t max_blocks)
      : target_(model_device(), target, max_rows, max_blocks),
        head_(head),
        max_rows_(max_rows),
        pinned_(model_device(), MemoryKind::kPinned),
        cache_(KvCache::create(model_device(), head.kv_group(), 1 + 4 * max_blocks,
                               ForwardHarness::kBlockSize)
                   .value()),
        tap_width_(static_cast<int32_t>(head.config().tap_layers.size()) *
                   TapSink::width_of(target.config(), head.config().tap_layers.front())),
        dtype_(target.config().dtype) {
    const auto rows = static_cast<size_t>(max_rows);
    const auto slots = static_cast<size_t>(target_.num_kv_slots());
    taps_ = pinned_.take(slots * static_cast<size_t>(tap_width_) * dtype_size(dtype_), "tap pages")
                .value();
    target.add_tap({head.config().tap_layers, taps_});
    StepTensors step{};
    step.counts = array<StepCounts>(1);
    step.token_ids = array<int32_t>(rows);
    step.positions = array<int32_t>(rows);
    step.row_slot = array<int32_t>(rows);
    step.kv_slot = array<int32_t>(rows);
    step.logits_rows = array<int32_t>(rows);
    step.sampled = array<int32_t>(rows);
    tensors_ = {step, array<int32_t>(rows)};
    hidden_ = static_cast<size_t>(head.config().state_size());
    states_ = array<float>(rows * hidden_);
    logits_ = array<float>(rows * static_cast<size_t>(head.head(0).rows));
    for (int32_t i = 0; i < head.config().num_modules; ++i) {
      pages_.push_back(array<float>(slots * hidden_));
    }
  }

  ForwardHarness& target() { return target_; }
  int32_t kv_slot(int32_t slot, int32_t position) const { return target_.kv_slot(slot, position); }

  // Results of a pass, by row.
  struct Result {
    std::vector<std::vector<float>> states;
    std::vector<std::vector<float>> logits;
  };

  // One pass of `module` over `rows`, all of which want logits. The states go to the pages of the
  // module too.
  Result pass(int32_t module, std::span<const HeadRow> rows, const DraftHead::Source& source) {
    const StepTensors& step = tensors_.rows;
    const auto count = static_cast<int32_t>(rows.size());
    *step.counts = {count, count, 0, 0};
    for (size_t i = 0; i < static_cast<size_t>(max_rows_); ++i) {
      const bool live = i < rows.size();
      const HeadRow row = live ? rows[i] : HeadRow{ForwardHarness::kSlots, 0, 0, 0};
      step.token_ids[i] = row.id;
      step.positions[i] = row.position;
      step.row_slot[i] = row.slot;
      step.kv_slot[i] = live ? kv_slot(row.slot, row.position) : 0;
      step.logits_rows[i] = live ? static_cast<int32_t>(i) : 0;
      tensors_.source[i] = row.source;
    }
    Queue& queue = target_.queue();
    head_.forward(queue, module, tensors_, target_.batch(), *cache_, source, max_rows_);
    queue.copy(states_, head_.states(), rows.size() * hidden_ * sizeof(float));
    const DraftHead::Head matrix = head_.head(module);
    gemm(queue, {.counts = step.counts,
                 .x = head_.head_input(queue, tensors_, max_rows_, false),
                 .weight = matrix.weight,
                 .y = logits_,
                 .bias = nullptr,
                 .row_kind = RowKind::kLogits,
                 .row_offset = 0,
                 .max_rows = max_rows_,
                 .n = matrix.rows,
                 .k = head_.config().layer.hidden_size,
                 .dtype = dtype_,
                 .out_dtype = DType::kF32});
    EXPECT_TRUE(queue.drain().ok()) << queue.drain().message();
    Result result;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto width = static_cast<size_t>(matrix.rows);
      result.states.emplace_back(states_ + i * hidden_, states_ + (i + 1) * hidden_);
      result.logits.emplace_back(logits_ + i * width, logits_ + (i + 1) * width);
      std::copy_n(
          states_ + i * hidden_, hidden_,
          pages_.at(static_cast<size_t>(module)) + static_cast<size_t>(step.kv_slot[i]) * hidden_);
    }
    return result;
  }

  // Entries [begin, end) of a sequence from true tokens, in one pass.
  Result catch_up(int32_t module, int32_t slot, std::span<const int32_t> ids, int32_t begin,
                  int32_t end) {
    std::vector<HeadRow> rows;
    for (int32_t i = begin; i < end; ++i) rows.push_back(true_row(slot, ids, i));
    return pass(module, rows, true_source(module));
  }
  HeadRow true_row(int32_t slot, std::span<const int32_t> ids, int32_t position) const {
    return {slot, position, ids[static_cast<size_t>(position)], kv_slot(slot, position - 1)};
  }
  // Tap rows, or the states of the module before.
  DraftHead::Source true_source(int32_t module) const {
    if (module == 0) return {taps_, dtype_, true};
    return {pages_[static_cast<size_t>(module - 1)], DType::kF32, false};
  }

  // Keys and values of a module's entry.
  std::vector<std::byte> entry_bytes(int32_t module, int32_t slot, int32_t position) {
    const KvLayer& layer = cache_->layer(module);
    const auto row = static_cast<size_t>(kv_entry_bytes(layer));
    const int32_t at = kv_slot(slot, position);
    const int32_t block = at / layer.block_size, offset = at % layer.block_size;
    const auto heads = static_cast<size_t>(layer.num_kv_heads);
    Arena staging(model_device(), MemoryKind::kPinned);
    auto* copies = static_cast<std::byte*>(staging.take(2 * heads * row, "entry").value());
    for (size_t i = 0; i < 2 * heads; ++i) {
      const auto head = static_cast<int32_t>(i % heads);
      const auto index =
          static_cast<size_t>((block * layer.num_kv_heads + head) * layer.block_size + offset);
      const void* memory = i < heads ? layer.k : layer.v;
      target_.queue().copy(copies + i * row, static_cast<const std::byte*>(memory) + index * row,
                           row);
    }
    EXPECT_TRUE(target_.queue().drain().ok());
    return {copies, copies + 2 * heads * row};
  }

 private:
  template <class T>
  T* array(size_t count) {
    return pinned_.take_array<T>(count, "test data").value();
  }

  ForwardHarness target_;
  DraftHead& head_;
  int32_t max_rows_;
  Arena pinned_;
  std::unique_ptr<KvCache> cache_;
  int32_t tap_width_;
  DType dtype_;
  size_t hidden_ = 0;
  void* taps_ = nullptr;
  float* states_ = nullptr;
  float* logits_ = nullptr;
  std::vector<float*> pages_;  // by module
  DraftTensors tensors_ = {};
};

}  // namespace foretoken::test
