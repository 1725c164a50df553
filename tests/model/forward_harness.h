#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/kv_cache.h"
#include "device/arena.h"
#include "kernels/plan_layout.h"
#include "kernels/step/prepare.h"
#include "model/registry.h"
#include "support/test_device.h"

namespace foretoken::test {

// The device of this process, which these tests cannot do without.
inline Device& model_device() {
  FT_CHECK_MSG(foretoken::test_device() != nullptr, "no test device");
  return *foretoken::test_device();
}

// Sequences of a harness.
inline constexpr int32_t kHarnessSlots = 4;

// The model in `folder`, with scratch for max_rows rows of either kind and the states of a harness.
inline std::unique_ptr<Model> load_test_model(const std::string& folder,
                                              const ConfigOptions& config, int32_t max_rows,
                                              int32_t max_model_len = 0) {
  LoadOptions options;
  options.config = config;
  options.max_model_len = max_model_len;
  options.max_rows = max_rows;
  options.max_logits_rows = max_rows;
  std::unique_ptr<Model> model = load_model(model_device(), folder, options).value();
  const Status taken = model->take_states({.num_slots = kHarnessSlots, .max_draft_tokens = 3});
  FT_CHECK_MSG(taken.ok(), taken.message());
  return model;
}

// A span of one step: the next num_tokens known tokens of a slot.
struct SpanWish {
  int32_t slot;
  int32_t num_tokens;
};

// Runs the prepare op and a model's forward by hand. Everything but weights, scratch and KV lies in
// pinned memory, so that the test reads and writes it between steps on every device.
class ForwardHarness {
 public:
  static constexpr int32_t kSlots = kHarnessSlots;
  static constexpr int32_t kBlockSize = 16;

  ForwardHarness(Device& device, Model& model, int32_t max_rows, int32_t max_blocks)
      : model_(model),
        max_rows_(max_rows),
        pinned_(device, MemoryKind::kPinned),
        queue_(device.make_queue().value()) {
    for (const KvGroupSpec& group : model.kv_groups()) {
      caches_.push_back(
          KvCache::create(device, group, 1 + kSlots * max_blocks, kBlockSize).value());
    }
    limits_ = {kSlots, max_rows, 1, 1};
    plan_ = pinned_.take(static_cast<size_t>(plan_bytes(limits_)), "plan").value();
    const size_t rows = static_cast<size_t>(max_rows), slots = kSlots + 1;
    const size_t blocks = static_cast<size_t>(1 + kSlots * max_blocks);
    batch_ = {array<SlotParams>(slots),
              array<SlotState>(slots),
              array<int32_t>(slots * static_cast<size_t>(max_blocks)),
              array<int32_t>(slots * static_cast<size_t>(max_blocks)),
              array<int32_t>(blocks * kBlockSize),
              array<PageHeader>(blocks),
              nullptr,
              max_blocks,
              kBlockSize,
              kSlots,
              {}};
    tensors_ = {array<StepCounts>(1), array<SpanState>(kSlots), array<int32_t>(rows),
                array<int32_t>(rows), array<int32_t>(rows),     array<int32_t>(rows),
                array<int32_t>(rows), array<int32_t>(rows),     array<int32_t>(rows)};
    logits_ = array<float>(rows * static_cast<size_t>(model.config().vocab_size));
  }

  // Puts a sequence into a slot; its blocks lie backwards in the cache of the full layers and
  // forwards in that of the windowed ones.
  void start(int32_t slot, std::span<const int32_t> ids) {
    const int32_t begin = slot * batch_.max_blocks;
    for (int32_t i = 0; i < batch_.max_blocks; ++i) {
      batch_.block_tables[begin + i] = begin + batch_.max_blocks - i;
      batch_.window_tables[begin + i] = begin + 1 + i;
    }
    batch_.slots[slot] = {};
    append(slot, ids);
  }

  void append(int32_t slot, std::span<const int32_t> ids) {
    SlotState& state = batch_.slots[slot];
    for (const int32_t id : ids) {
      const int32_t block = batch_.block_tables[slot * batch_.max_blocks + state.len / kBlockSize];
      batch_.token_pages[block * kBlockSize + state.len % kBlockSize] = id;
      batch_.page_headers[block].count = state.len % kBlockSize + 1;
      ++state.len;
    }
  }

  // The rows of the slot have the adapter in this place of the model's pool from now on, those from
  // position `begin` on; -1: none.
  void adapt(int32_t slot, int32_t place, int32_t begin = 0) {
    batch_.params[slot].adapter = place + 1;
    batch_.params[slot].adapter_begin = begin;
  }
  // What later steps say about the adapters of their rows.
  void use_adapters(AdapterUse use, bool ends = false) {
    adapters_ = use;
    adapts_ends_ = ends;
  }

  // One step; returns the logits of every row in span order and counts the rows as computed.
  std::vector<std::vector<float>> step(std::span<const SpanWish> wishes) {
    const PlanView plan = plan_view(plan_, limits_);
    *plan.header = {};
    for (const SpanWish& wish : wishes) {
      plan.spans[plan.header->num_spans++] = {wish.slot, wish.num_tokens, 0, 0, 0, 0, 0, 0, 0, 0};
      drop_behind_window(wish.slot);
    }
    prepare(*queue_, {.plan = plan_,
                      .limits = limits_,
                      .batch = batch_,
                      .tensors = tensors_,
                      .max_rows = max_rows_,
                      .max_logits_rows = max_rows_});
    EXPECT_TRUE(queue_->drain().ok()) << queue_->drain().message();
    const int32_t rows = tensors_.counts->num_rows;
    tensors_.counts->num_logits_rows = rows;
    for (int32_t i = 0; i < rows; ++i) tensors_.logits_rows[i] = i;
    place_in_window(rows);
    const KvCaches caches{caches_[0].get(), caches_.size() > 1 ? caches_[1].get() : nullptr};
    model_.forward(*queue_, tensors_, batch_, caches,
                   {.max_rows = max_rows_, .adapters = adapters_, .adapts_ends = adapts_ends_});
    const size_t vocab = static_cast<size_t>(model_.config().vocab_size);
    // Two tiles, as a step with many logits rows has.
    const int32_t half = (max_rows_ + 1) / 2;
    model_.logits(*queue_, tensors_, 0, half, logits_);
    if (half < max_rows_) {
      model_.logits(*queue_, tensors_, half, max_rows_ - half,
                    logits_ + static_cast<size_t>(half) * vocab);
    }
    EXPECT_TRUE(queue_->drain().ok()) << queue_->drain().message();
    for (const SpanWish& wish : wishes) batch_.slots[wish.slot].computed += wish.num_tokens;
    std::vector<std::vector<float>> out;
    for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
      out.emplace_back(logits_ + i * vocab, logits_ + (i + 1) * vocab);
    }
    return out;
  }

  // KV slots of all blocks; rows of tap pages.
  int32_t num_kv_slots() const { return caches_[0]->num_blocks() * kBlockSize; }
  const BatchState& batch() const { return batch_; }
  const StepTensors& tensors() const { return tensors_; }
  Queue& queue() { return *queue_; }
  int32_t kv_slot(int32_t slot, int32_t position) const {
    const int32_t* table = batch_.block_tables + slot * batch_.max_blocks;
    return table[position / kBlockSize] * kBlockSize + position % kBlockSize;
  }

  // All rows of one sequence, in chunks of at most `chunk` rows.
  std::vector<std::vector<float>> run(std::span<const int32_t> ids, int32_t chunk) {
    start(0, ids);
    std::vector<std::vector<float>> all;
    for (int32_t done = 0; done < static_cast<int32_t>(ids.size()); done += chunk) {
      const int32_t rows = std::min(chunk, static_cast<int32_t>(ids.size()) - done);
      const SpanWish wish{0, rows};
      for (auto& row : step({&wish, 1})) all.push_back(std::move(row));
    }
    return all;
  }

 private:
  // Takes the blocks that no further row can see from a windowed table, as the scheduler does.
  void drop_behind_window(int32_t slot) {
    const int32_t window = caches_.back()->spec().window;
    if (window == 0) return;
    const int32_t first_seen = std::max(0, batch_.slots[slot].computed + 1 - window);
    int32_t* table = batch_.window_tables + slot * batch_.max_blocks;
    std::fill(table, table + first_seen / kBlockSize, 0);
  }

  void place_in_window(int32_t rows) {
    for (int32_t i = 0; i < rows; ++i) {
      const int32_t position = tensors_.positions[i];
      const int32_t* table = batch_.window_tables + tensors_.row_slot[i] * batch_.max_blocks;
      tensors_.window_slot[i] = table[position / kBlockSize] * kBlockSize + position % kBlockSize;
    }
    for (int32_t i = rows; i < max_rows_; ++i) tensors_.window_slot[i] = 0;
  }

  template <class T>
  T* array(size_t count) {
    return pinned_.take_array<T>(count, "test data").value();
  }

  Model& model_;
  int32_t max_rows_;
  AdapterUse adapters_ = AdapterUse::kNone;
  bool adapts_ends_ = false;
  Arena pinned_;
  std::unique_ptr<Queue> queue_;
  std::vector<std::unique_ptr<KvCache>> caches_;  // by group
  PlanLimits limits_ = {};
  void* plan_ = nullptr;
  BatchState batch_ = {};
  StepTensors tensors_ = {};
  float* logits_ = nullptr;
};

inline int32_t argmax(const std::vector<float>& row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace foretoken::test
