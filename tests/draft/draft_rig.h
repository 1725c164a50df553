#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention/kv_cache.h"
#include "device/arena.h"
#include "draft/registry.h"
#include "kernels/plan_layout.h"
#include "model/registry.h"
#include "support/test_device.h"

namespace foretoken::test {

// What a step does for one sequence, as a scheduler would say it.
struct RigSpan {
  int32_t slot = 0;
  int32_t num_tokens = 1;                  // known tokens to compute
  int32_t max_verified = kMaxDraftTokens;  // drafts to verify at most
  int32_t num_draft_tokens = 0;            // drafts to propose at most
  int32_t draft_rows = 64;  // entries to catch up at most; with 0 and no limit it rests
};

// A sequence of ids, and what the drafter proposed behind it.
struct RigOutput {
  std::vector<int32_t> committed;
  std::vector<int32_t> drafted;   // that were verified
  std::vector<int32_t> proposed;  // for the next step
  int32_t num_accepted = 0;
  int32_t draft_missing = 0;
  DeviceFinish finish = DeviceFinish::kNone;
};

// A target and its drafters driven through the ops of a step by hand-made plans, without an engine.
// Batch state lies in pinned memory, so that tests read and write it between steps.
class DraftRig {
 public:
  static constexpr int32_t kSlots = 6;
  static constexpr int32_t kBlockSize = 8;
  static constexpr int32_t kMaxBlocks = 40;  // of a sequence
  static constexpr int32_t kNumBlocks = 1 + 4 * kSlots * kMaxBlocks;
  static constexpr int32_t kMaxRows = 320;
  static constexpr int32_t kMaxLen = kMaxBlocks * kBlockSize;

  DraftRig(const std::string& target_folder, std::vector<SpeculativeConfig> drafters,
           const std::function<void(DrafterContext&)>& change = {},
           const std::string& dtype = "auto", KvFormat kv_format = KvFormat::kPlain);
  ~DraftRig();

  // Begins a sequence: `ids` known, of which the blocks `hits` hold the first ones computed.
  void start(int32_t slot, std::vector<int32_t> ids, std::vector<int32_t> hits = {});
  // Parameters of sequences to come: greedy, no stop ids, as many drafts as there can be.
  SlotParams params{};
  // Gives back the blocks of a slot but for its hits, to be handed out again at once, or keeps them
  // (a prefix cache).
  void release(int32_t slot, bool keep_blocks = false);

  // One step; outputs in the order of the spans.
  std::vector<RigOutput> step(const std::vector<RigSpan>& spans);
  RigOutput step(const RigSpan& span) { return step(std::vector<RigSpan>{span}).front(); }
  // Ids that the next step samples instead of its own, by slot, from its first logits row on.
  std::map<int32_t, std::vector<int32_t>> forced;
  // How often a drafter enqueued its passes.
  int64_t num_proposals = 0;

  const SlotState& state(int32_t slot) const { return batch_.slots[slot]; }
  std::vector<int32_t> tokens(int32_t slot) const;
  const std::vector<int32_t>& blocks(int32_t slot) const {
    return blocks_.at(static_cast<size_t>(slot));
  }
  // Keys and values of one position of a slot, all layers.
  std::vector<std::byte> entry(const KvCache& cache, int32_t slot, int32_t position);
  const KvCache& target_cache() const { return *caches_.front(); }
  Drafter& drafter(size_t index = 0) { return *drafters_.at(index); }
  Model& target() { return *target_; }
  const std::string& target_folder() const { return target_folder_; }

 private:
  template <class T>
  T* array(size_t count) {
    return pinned_.take_array<T>(count, "test data").value();
  }
  void take_batch();
  void take_step();
  int32_t write_plan(const std::vector<RigSpan>& spans);
  void cover(int32_t slot, int32_t len);
  int32_t positions_ahead(int32_t slot) const;
  void enqueue_target(int32_t max_rows);
  void enqueue_drafters(const std::vector<RigSpan>& spans);
  void force_samples();
  void run();

  Device& device_;
  const std::string target_folder_;
  std::unique_ptr<Queue> queue_;
  Arena pinned_;
  std::unique_ptr<Model> target_;
  std::vector<SpeculativeConfig> configs_;
  std::vector<std::unique_ptr<Drafter>> drafters_;
  std::vector<std::unique_ptr<KvCache>> caches_;  // of the target, by group
  PlanLimits limits_{};
  ResultLimits result_limits_{};
  BatchState batch_{};
  StepTensors tensors_{};
  uint64_t* step_ = nullptr;
  char* ring_ = nullptr;
  int64_t entry_bytes_ = 0;
  void* plan_ = nullptr;
  void* result_ = nullptr;
  float* logits_ = nullptr;
  static constexpr size_t kEntryBytes = 16384;
  std::byte* entry_ = nullptr;  // room for one
  std::vector<int32_t> free_blocks_;
  std::vector<std::vector<int32_t>> blocks_;  // by slot
  std::vector<size_t> num_hits_;              // leading blocks of those that belong to others
  std::vector<SlotInit> inits_;               // of the step to come
  std::vector<BlockUpdate> updates_;
  struct NewIds {
    int32_t slot;
    std::vector<int32_t> ids;
    int32_t position;
  };
  std::vector<NewIds> new_ids_;
  uint32_t epoch_ = 0;
};

}  // namespace foretoken::test
