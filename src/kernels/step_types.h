#pragma once
#include <cstdint>

namespace foretoken {

// Plain data shared by the host, the CPU kernels and the CUDA kernels.

inline constexpr int kMaxDrafts = 16;    // upper limit of num_speculative_tokens
inline constexpr int kMaxStopIds = 32;   // EOS ids and stop_token_ids of one request
inline constexpr int kStepRingSize = 4;  // ring entries; more than the steps in flight

// Why a sequence ended, as the device found it.
enum class DeviceFinish : int32_t { kNone = 0, kStop = 1, kLength = 2, kError = 3 };

// What a request asks of its slot. Written by the step that holds the sequence's first span.
struct SlotParams {
  uint64_t seed;
  int32_t choice;      // index among the choices of one request
  float temperature;   // 0: greedy
  float top_p;         // 1: off
  int32_t top_k;       // 0: off
  int32_t min_len;     // prompt length + min_tokens: below it no stop id can be sampled
  int32_t max_len;     // prompt length + max_tokens, at most max_model_len
  int32_t max_drafts;  // the request's own bound; 0: no speculation
  int32_t num_stop_ids;
  int32_t stop_ids[kMaxStopIds];
};

// The truth about a sequence; lives on the device and is written only by queue ops.
struct SlotState {
  int32_t len;       // known tokens: prompt and committed output
  int32_t computed;  // KV positions written and valid; len - 1 while decoding
  int32_t finished;  // DeviceFinish; a finished slot gets no rows
  int32_t num_drafts;
  int32_t drafts[kMaxDrafts];
};

// The tokens of a KV block. Its ids lie in BatchState::token_pages.
struct PageHeader {
  int32_t parent;         // block before it in the sequence that filled it, -1 for the first
  uint32_t parent_epoch;  // the parent's epoch then; another value now: the link is dead
  uint32_t epoch;         // counts how often the block was handed out
  int32_t count;          // valid ids
};

// All per-sequence device memory. Slot `num_slots` is the null slot, block 0 the null block.
struct BatchState {
  SlotParams* params;        // [num_slots + 1]
  SlotState* slots;          // [num_slots + 1]
  int32_t* block_tables;     // [num_slots + 1, max_blocks]
  int32_t* token_pages;      // [num_blocks, block_size]
  PageHeader* page_headers;  // [num_blocks]
  int32_t max_blocks;        // blocks of the longest sequence
  int32_t block_size;
  int32_t num_slots;
};

// --- The plan of one step: a ring entry on the host, a copy on the device. ---

struct PlanHeader {
  uint64_t step;  // number of this step, from 0; checked against the device's counter
  int32_t num_spans;
  int32_t num_inits;
  int32_t num_block_updates;
  int32_t num_tokens;
};

// The rows of one sequence in this step: positions [computed, computed + num_tokens) of its known
// tokens, then, when those reach the last known token, up to max_drafts drafts. Reaching the last
// known token is what makes rows want logits; there is no prefill and no decode.
struct SpanPlan {
  int32_t slot;
  int32_t num_tokens;
  int32_t max_drafts;
  int32_t num_new_ids;     // ids in PlanView::tokens to write to the token pages; 0 or num_tokens
  int32_t token_offset;    // where they start
  int32_t write_position;  // KV position of the first of them
};

// Resets a slot before the spans are looked at.
struct SlotInit {
  int32_t slot;
  int32_t len;
  int32_t computed;  // tokens found in the prefix cache
  int32_t reserved;
  SlotParams params;
};

struct BlockUpdate {
  int32_t slot;
  int32_t index;  // in the slot's block table
  int32_t block;
  uint32_t epoch;  // > 0: freshly handed out, its page header restarts; 0: a prefix hit
};

// Where the parts of a plan lie; all pointers into one allocation laid out by plan_view.
struct PlanView {
  PlanHeader* header;
  SpanPlan* spans;             // [max_spans]
  SlotInit* inits;             // [max_spans]
  BlockUpdate* block_updates;  // [max_block_updates]
  int32_t* tokens;             // [max_tokens]
};

// Capacities of a plan, fixed at start-up.
struct PlanLimits {
  int32_t max_spans;
  int32_t max_tokens;
  int32_t max_block_updates;
};

// --- What steps 2..7 compute from a plan; device memory. ---

struct StepCounts {
  int32_t num_rows;         // live token rows
  int32_t num_logits_rows;  // live logits rows
  int32_t num_spans;
  int32_t reserved;
};

struct SpanState {
  int32_t slot;
  int32_t row_begin;  // first token row
  int32_t num_rows;
  int32_t logits_begin;  // first logits row
  int32_t num_logits;    // num_drafts + 1, or 0 while prompt tokens are missing
  int32_t num_drafts;
};

struct StepTensors {
  StepCounts* counts;
  SpanState* spans;      // [max_spans]
  int32_t* token_ids;    // [max_rows]
  int32_t* positions;    // [max_rows] also the KV position
  int32_t* row_slot;     // [max_rows]
  int32_t* kv_slot;      // [max_rows] block * block_size + offset of the row's KV entry
  int32_t* logits_rows;  // [max_logits_rows] token row of each logits row
  int32_t* sampled;      // [max_logits_rows] sampled id; -1: the row has no valid probability
};

// --- What a step tells the host: a ring entry in pinned memory, copied from the device. ---

struct SpanResult {
  int32_t slot;
  int32_t num_committed;  // ids below; 0 while prompt tokens are missing or after the end
  int32_t num_drafted;    // drafts verified in this step
  int32_t num_accepted;   // drafts among the committed ids; the corrected or bonus id is not one
  int32_t finish;         // DeviceFinish
  int32_t ids[kMaxDrafts + 1];
};

struct ResultHeader {
  uint64_t step;
  int32_t num_spans;
  int32_t num_rows;
};

struct ResultView {
  ResultHeader* header;
  SpanResult* spans;  // [max_spans], in the order of the plan
};

}  // namespace foretoken
