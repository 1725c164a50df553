#pragma once
#include <cstdint>
#include <vector>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "compat/drafter_traits.h"
#include "device/queue.h"
#include "kernels/sampling/token_masks.h"
#include "kernels/step/copy_branches.h"
#include "kernels/step/move_blocks.h"
#include "kernels/step_types.h"

namespace foretoken {

// How drafts are made under the masks of their slots' grammars. A null ticket: no slot has one.
struct DraftMasks {
  MaskExchange exchange{};
  MaskTicket* ticket = nullptr;
  int64_t budget_ns = 0;  // to wait in a pass; a draft whose mask is late is made without
  // With several ranks the masks are those of rank 0 (share_masks); null: there is one.
  const void* comm = nullptr;
  bool waits = true;  // rank 0 does, and tells the others
};

// What a drafter may read: the step's plan and the state of the batch after its commit.
struct DraftStep {
  const void* plan = nullptr;
  PlanLimits limits{};
  BatchState batch{};
  StepTensors tensors{};
  KvCaches caches{};  // of the target
  int index = 0;  // of the drafter among the engine's: SlotParams::drafter of the slots it serves
  DraftMasks masks{};
  // What a KV block has, its entries of the drafter and tap pages too; for steps with branches.
  BranchParts full{};
  BranchParts windowed{};
  int32_t min_branch_chance = 0;  // of all drafts of a branch, in 1/kSureDraft
};

// Bounds of a step's draft passes, which a graph is captured for.
struct DraftShape {
  int num_draft_tokens = 0;   // most drafts a slot; 0: entries are caught up, nothing is proposed
  int max_catch_up_rows = 0;  // rows of the first pass
  int max_spans = 0;          // rows of each later pass, without those of branches
  int num_branches = 0;       // that may begin; 0: none
  bool operator==(const DraftShape&) const = default;
};

// Proposes tokens for the next step. It knows nothing of asynchrony, graphs or ranks: it enqueues
// ops that read device state and write SlotState::drafts and num_draft_tokens. For each slot of the
// step that drafts with it, the number wanted stands in SlotState::draft.num_draft_tokens
// (choose_lengths runs before). Engine thread.
class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual const char* name() const = 0;
  virtual const DrafterTraits& traits() const = 0;

  // Device memory that each KV block takes in addition: its entries, tap pages.
  virtual int64_t bytes_per_block(int block_size) const = 0;
  // Takes that memory, once, after the sizes are known and before anything is captured.
  virtual Status take_memory(int num_blocks, int block_size) = 0;
  // That memory, once it is taken; bytes_per_block together.
  virtual std::vector<BlockPart> block_parts() const { return {}; }
  // The states that it keeps of each sequence, by slot.
  virtual std::vector<BlockPart> state_parts() const { return {}; }
  // Device memory of its own: weights and scratch, without what bytes_per_block counts.
  virtual int64_t memory_bytes() const = 0;
  // Its entries, at the block ids of the target's full group; null without KV and before
  // take_memory.
  virtual const KvCache* kv_cache() const { return nullptr; }

  // Enqueues that it knows nothing any more of texts that have ended.
  virtual void forget_texts(Queue&) {}

  // Enqueues the ops that catch up and draft for the spans of the step. Called while a graph is
  // captured too.
  virtual void propose(Queue& queue, const DraftStep& step, const DraftShape& shape) = 0;
};

}  // namespace foretoken
