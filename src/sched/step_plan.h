#pragma once
#include <foretoken/limits.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kv/block_pool.h"
#include "sched/sequence.h"
#include "spec/draft_budget.h"

namespace foretoken {

// What a step must do beyond sampling; a step without them runs a smaller graph.
enum StepFeature : uint32_t {
  kShapesLogits = 1,  // penalties, bias, bad words, allowed ids
  kWantsLogprobs = 2,
  kHasProcessors = 4,  // logits processors on the host
  kScoresPrompt = 8,   // prompt rows want logits
  kPools = 16,         // hidden states are pooled
  kHasGrammar = 32,    // masks of grammars
  kHasAdapters = 64,   // adapters change products of attention,
  kAdaptsMlp = 128,    // and of MLPs; only with kHasAdapters
  kAdaptsEnds = 256,   // and the embedding or the output matrix; only with kHasAdapters
  kHasBranches = 512,  // other drafts of sequences are verified beside theirs
};
// Of every stage.
inline constexpr uint32_t kForwardFeatures = kHasAdapters | kAdaptsMlp | kAdaptsEnds;
inline constexpr int kNumStepFeatureSets = 1024;

// One sequence's rows in a step, as bounds. See kernels/step_types.h for how the device reads it.
struct Span {
  Sequence* sequence = nullptr;
  int num_tokens = 0;         // known tokens to compute
  int max_verified = 0;       // drafts that it verifies at most
  int first_new_id = -1;      // index in Sequence::tokens of ids to upload, -1: the device has them
  bool is_first = false;      // resets the slot's device state
  bool samples = false;       // reaches the last known token
  bool wants_all = false;     // every row of known tokens wants logits
  int num_hit_tokens = 0;     // with is_first: found in the prefix cache
  int num_state_entries = 0;  // with is_first: entries of a drafter that its state comes with
  int num_draft_tokens = 0;   // most drafts to propose at the end of the step
  int draft_rows = 0;         // entries of the drafter's KV to catch up at most
  int num_lookup_tokens = 0;  // most drafts of the sequence's look-ups
  bool had_lookups = false;   // some of those it verifies may be a look-up's

  int max_rows() const { return num_tokens + max_verified; }
  // A scored chunk brings the token behind it, which its last row is scored with.
  int num_new_ids() const {
    return first_new_id < 0 ? 0 : num_tokens + (wants_all && !samples ? 1 : 0);
  }
  int max_logits_rows() const {
    if (sequence->pools) return 0;
    return wants_all ? max_rows() : samples ? max_verified + 1 : 0;
  }
};

// A block that enters a slot's block table of its group.
struct BlockAssignment {
  int slot = 0;
  int index = 0;
  BlockId block = kNullBlock;
  bool fresh = false;     // false: a prefix hit, whose token page is full already
  bool windowed = false;  // of the windowed group, which has no token pages
};

// What host memory keeps images of: blocks of the full and of the windowed group, snapshots of
// states.
enum class HostPart : uint8_t { kFull, kWindowed, kStates };
inline constexpr int kNumHostParts = 3;

// A KV block, or a snapshot of states, and the place in host memory that its contents move to, or
// from, before the step. What the page header of a block of the full group that comes in says from
// then on: PageHeader.
struct BlockMove {
  BlockId block = kNullBlock;  // or the snapshot's number, from 0
  int image = 0;               // of that part, from 0
  int parent = -1;             // block before it in its sequence, -1: none
  uint32_t parent_epoch = 0;
  uint32_t epoch = 0;
  HostPart part = HostPart::kFull;
};

// States of recurrent layers, of the sequence in a slot, that are copied to a snapshot or from one
// before the step (kv/state_snapshots.h).
struct StateMove {
  int slot = 0;
  int snapshot = 0;  // from 0
  // Of a move to it: the block behind which it stands.
  BlockId block = kNullBlock;
};

// An adapter whose bytes must be in a place on the device before the step.
struct AdapterLoad {
  int slot = 0;
  const Sequence* sequence = nullptr;  // one that uses it
};

class TimeBound;

// Rows of all paced prompts together in a step (SchedulerConfig::paced_prompt_len); 0: any.
struct PacedRows {
  int beside = 0;  // others, if the prompts are no more than those
  int alone = 0;
  // Rows of all prompts together beside sequences that decode, which take the place of `beside`;
  // null: any.
  const TimeBound* bound = nullptr;
};

// What a step has to compute.
struct StepLoad {
  int num_seqs = 0;          // that decode
  int num_draft_tokens = 0;  // bound on what they verify
  int num_prompt_rows = 0;   // of all prompts together
  int64_t num_tokens = 0;    // that the ones that decode know
  int prefix_len = 0;        // computed of a prompt before, of the one where that is most
};

// Where the spans of a step are cut in two lanes of rows: leading spans are the first lane.
struct LaneCut {
  int num_spans = 0;  // of the first lane
  int max_rows = 0;   // bound on the rows of the larger one
};

// What the host decides about one step: shapes and bounds, never values. Vectors are reserved at
// start-up.
struct StepPlan {
  uint64_t step = 0;
  std::vector<Span> spans;
  std::vector<BlockAssignment> blocks;
  std::vector<AdapterLoad> adapter_loads;
  // To host memory, and from it once those are there; no two of either and of one part have a block
  // or an image in common. Ahead of the states below.
  std::vector<BlockMove> moves_out;
  std::vector<BlockMove> moves_in;
  // To snapshots, and from them once those are there; each is written once at most.
  std::vector<StateMove> states_out;
  std::vector<StateMove> states_in;
  int num_rows = 0;         // bound on the token rows
  int num_branches = 0;     // that have rows among these at most
  int num_branch_rows = 0;  // bound on those
  int num_logits_rows = 0;  // bound on the logits rows
  int num_new_ids = 0;      // ids to upload
  int num_words = 0;        // words of variable parameters to upload
  uint32_t features = 0;    // StepFeature bits of all spans
  std::array<DraftUse, kMaxDrafters> drafts{};
  int paced_limit = 0;            // the rows that were granted to paced prompts beside others
  int num_paced_rows = 0;         // those that they got
  int num_lone_rows = 0;          // the same without others
  int num_other_prompt_rows = 0;  // of prompts that are not paced
  StepLoad load{};                // of a step that has PacedRows::bound; others: nothing

  int num_prompt_rows() const { return num_paced_rows + num_lone_rows + num_other_prompt_rows; }

  // That its sequences know before it, or will if earlier steps commit one each.
  int64_t known_tokens() const {
    int64_t sum = 0;
    for (const Span& span : spans) sum += span.sequence->len_floor();
    return sum;
  }

  // The cut with the smallest larger lane; with fewer than two spans everything is in the first.
  LaneCut lane_cut() const {
    LaneCut cut{static_cast<int>(spans.size()), num_rows};
    int before = 0;
    for (size_t i = 1; i < spans.size(); ++i) {
      before += spans[i - 1].max_rows();
      const int larger = std::max(before, num_rows - before);
      if (larger < cut.max_rows) cut = {static_cast<int>(i), larger};
    }
    return cut;
  }

  void clear() {
    spans.clear();
    blocks.clear();
    adapter_loads.clear();
    moves_out.clear();
    moves_in.clear();
    states_out.clear();
    states_in.clear();
    num_rows = 0;
    num_branches = 0;
    num_branch_rows = 0;
    num_logits_rows = 0;
    num_new_ids = 0;
    num_words = 0;
    features = 0;
    drafts = {};
    paced_limit = 0;
    num_paced_rows = 0;
    num_lone_rows = 0;
    load = {};
    num_other_prompt_rows = 0;
  }
};

}  // namespace foretoken
