#pragma once
#include <array>
#include <utility>
#include <vector>

#include "check.h"
#include "kernels/draft/choose_lengths.h"
#include "kernels/draft/draft_next.h"
#include "kernels/draft/draft_rows.h"
#include "kernels/draft/ngram.h"
#include "kernels/draft/suffix.h"
#include "kernels/plan_layout.h"
#include "kernels/rows/pool.h"
#include "kernels/sampling/host_logits.h"
#include "kernels/sampling/keep_raw.h"
#include "kernels/sampling/logprobs.h"
#include "kernels/sampling/sample.h"
#include "kernels/sampling/shape_logits.h"
#include "kernels/step/prepare.h"
#include "kernels/step/publish.h"
#include "kernels/step/upload.h"
#include "kernels/step/verify_and_commit.h"

namespace foretoken::check {

inline constexpr int kSlots = 12, kBlockSize = 8, kMaxBlocks = 20, kVocab = 6, kMaxRows = 160;
inline constexpr int kNumBlocks = kSlots * kMaxBlocks + 1;
inline constexpr int kHidden = 150, kTop = 3, kMaskWords = 1, kMaxLen = kMaxBlocks * kBlockSize;
inline constexpr int kMaxPrediction = 16;
inline constexpr PlanLimits kLimits{kSlots, 400, 2 * kSlots* kMaxBlocks, 500};
inline constexpr ResultLimits kResultLimits{kSlots, kMaxRows, kTop, kHidden};

// Drafter 0 looks up the prompt, 1 depends on ids alone, 2 pairs ids with states of the target, 3
// looks up past answers too.
inline constexpr int kNumDrafters = 4, kNumPasses = 5, kMaxDraftRows = 100;
inline constexpr int kNumRowNs = 60;
inline constexpr int kPastEntries = 1024;  // few, so that some are forgotten

// The memory of a step on one device. The CPU's ops are the reference of the CUDA ones.
struct StepSide {
  Device& device;
  Queue& queue;
  BatchState batch{};
  StepTensors tensors{};
  std::array<DraftTensors, kNumDrafters * 2> drafts{};  // two passes of each drafter, in turn
  int32_t* drafted_ids;  // [kNumDrafters, kNumPasses, kSlots] what the drafters' logits would give
  int32_t* token_map;
  int32_t* row_ns;
  uint32_t* synthetic;
  suffix_table::Table past{};
  void* plan;
  void* result;
  float* model_logits;
  float* logits;
  float* raw;
  float* states;
  float* accumulators;
  uint32_t* seen;
  HostLogits host;
  uint64_t* step;
  char* plans;
  char* results;
  std::atomic<uint64_t>* word;

  StepSide(Device& owner, Queue& its_queue);
  ~StepSide();
  StepSide(const StepSide&) = delete;
  StepSide& operator=(const StepSide&) = delete;

  template <class T>
  T* take(size_t count, MemoryKind kind = MemoryKind::kDevice) {
    blocks.emplace_back(device.allocate(count * sizeof(T), kind), kind);
    return static_cast<T*>(blocks.back().first);
  }
  template <class T>
  std::vector<T> read(const T* from, size_t count) {
    std::vector<T> values(count);
    queue.copy(values.data(), from, count * sizeof(T));
    const Status status = queue.drain();
    if (!status.ok()) report(false, "step", status.message());
    return values;
  }
  PlanView entry(uint64_t n) {
    return plan_view(plans + n % kStepRingSize * plan_bytes(kLimits), kLimits);
  }
  ResultView answer(uint64_t n) {
    return result_view(results + n % kStepRingSize * result_bytes(kResultLimits), kResultLimits);
  }

  // The parts of a step: before the target's forward, from its logits to the samples, and the rest.
  void launch_before();
  void launch_sample();
  void launch_after(bool is_synthetic);

  std::vector<std::pair<void*, MemoryKind>> blocks;

 private:
  void launch_drafter(int drafter);
  void launch_passes(int drafter);
};

}  // namespace foretoken::check
