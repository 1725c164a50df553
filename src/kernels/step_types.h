#pragma once
#include <foretoken/limits.h>

#include <cstdint>

#include "base/host_device.h"
#include "spec/acceptance_rates.h"
#include "spec/verify.h"

namespace foretoken {

// Plain data shared by the host, the CPU kernels and the CUDA kernels.

inline constexpr int kMaxStopIds = 32;        // EOS ids and stop_token_ids of one request
inline constexpr int kStepRingSize = 8;       // ring entries; more than the steps in flight
inline constexpr int kMaxLogitBias = 1024;    // entries of one request
inline constexpr int kMaxBadWordInts = 2048;  // lengths and ids of one request's bad words
inline constexpr int kMaxBranches = 32;       // slots that follow others (BranchState)
inline constexpr int kNoLogprobs = -1;        // SlotParams::num_logprobs: none wanted

// What a sequence without output hands back: nothing, or one hidden state of its prompt.
enum class DevicePooling : int32_t {
  kNone = 0,
  kFirst = 1,
  kLast = 2,
  kMean = 3,
  kMax = 4,           // of each column
  kMeanSqrtLen = 5,   // the sum over the root of the length
  kWeightedMean = 6,  // state n, from 1 on, counts n times
  kTokens = 7         // all of them, of a prompt that is one span
};

// What a request asks of its slot. Written by the step that holds the sequence's first span.
struct SlotParams {
  uint64_t seed;
  uint64_t processors;        // opaque: the host's list of logits processors; 0: none
  uint64_t grammar;           // opaque: the host's number for the output's grammar; 0: none
  uint64_t cache_salt;        // who may see its text; with adapter_number as PrefixLink's roots
  int32_t choice;             // index among the choices of one request
  float temperature;          // 0: greedy
  float top_p;                // 1: off
  float min_p;                // 0: off
  int32_t top_k;              // 0: off
  float repetition_penalty;   // 1: off
  float frequency_penalty;    // 0: off
  float presence_penalty;     // 0: off
  int32_t prompt_len;         // tokens before it are the prompt, from it on the output
  int32_t min_len;            // prompt length + min_tokens: below it no stop id can be sampled
  int32_t max_len;            // prompt length + max_tokens, at most max_model_len
  int32_t max_draft_tokens;   // the request's own bound; 0: no speculation
  int32_t drafter;            // which of the engine's drafters proposes for it; the last of a list
  int32_t lookups;            // bit d: drafter d goes before that one, where it finds something
  int32_t adapter;            // 1 + its adapter's place on the device; 0: it has none
  int32_t adapter_begin;      // positions before it are without the adapter
  int32_t adapter_number;     // of the load of its adapter, which no other load has; 0: it has none
  int32_t num_logprobs;       // alternatives wanted for each token; kNoLogprobs: no logprobs
  int32_t num_logit_bias;     // entries of SlotLists::logit_bias
  int32_t num_bad_word_ints;  // of SlotLists::bad_words
  int32_t has_allowed_ids;    // 1: SlotLists::allowed_ids masks every other id
  int32_t num_prediction;     // ids of SlotLists::prediction
  int32_t num_flex_words;     // of SlotLists::flex; 0: the request says nothing of what it sees
  int32_t pooling;            // DevicePooling
  int32_t num_stop_ids;
  int32_t stop_ids[kMaxStopIds];
};

// Whether anything changes the slot's logits before temperature, min_p, top_k and top_p.
FT_HD inline bool shapes_logits(const SlotParams& p) {
  return p.repetition_penalty != 1.0f || p.frequency_penalty != 0.0f ||
         p.presence_penalty != 0.0f || p.num_logit_bias > 0 || p.num_bad_word_ints > 0 ||
         p.has_allowed_ids != 0 || p.processors != 0;
}

struct LogitBias {
  int32_t id;
  float bias;
};

// The variable parts of SlotParams, for all slots.
struct SlotLists {
  LogitBias* logit_bias;  // [num_slots + 1, kMaxLogitBias], ids differ
  int32_t* bad_words;     // [num_slots + 1, kMaxBadWordInts] length, ids, length, ids, ...
  uint32_t* allowed_ids;  // [num_slots + 1, mask_words] bit i of the row: id i may be sampled
  int32_t mask_words;     // ceil(vocab / 32)
  int32_t max_prediction;
  int32_t* prediction;  // [num_slots + 1, max_prediction] what the output will probably be
  // [num_slots + 1, max_flex_words] what attention asks a request (pack_flex); zero where it says
  // nothing.
  uint32_t* flex = nullptr;
  int32_t max_flex_words = 0;
};

// What a slot's drafter knows of it. "Entry i" is the drafter's KV entry at KV position i; an exact
// entry is the one that a fresh prefill of the committed tokens would write.
struct DraftState : DraftRates {
  int32_t computed;  // entries before it are exact; 0 also: to be found in the page headers
  int32_t written;   // entries [computed, written) belong to the drafts of the last proposal and
                     // are exact where those are accepted; 0: none
  int32_t num_draft_tokens;  // to propose at the end of this step; set by choose_lengths
};

// Other drafts for positions that a sequence has drafts for lie in slots of their own, branches,
// which follow the sequence's slot, their leader (docs/decisions/0047). These fields tell of either
// (kernels/branches.h).
struct BranchState {
  // Number + 1 of the step whose drafts they belong to: of a leader, whether it has branches, and
  // of a branch, whether it is one of those; 0: none.
  int32_t stamp = 0;
  int32_t chance = 0;  // that all drafts of the slot so far are right, as their drafter sees it, of
                       // kSureDraft
  int32_t leader = 0;  // of a branch
  int32_t parent = 0;  // of a branch: the slot whose drafts it shares until draft `begin`
  int32_t begin = 0;
  // Of a leader behind its commit: the branch whose drafts it took, 0: its own; and the first
  // position whose entries are that one's.
  int32_t winner = 0;
  int32_t winner_begin = 0;
};
inline constexpr int32_t kSureDraft = 65535;

// The truth about a sequence; lives on the device and is written only by queue ops.
struct SlotState {
  int32_t len;       // known tokens: prompt and committed output
  int32_t computed;  // KV positions written and valid; len - 1 while decoding
  int32_t finished;  // DeviceFinish; a finished slot gets no rows
  int32_t num_draft_tokens;
  int32_t drafts[kMaxDraftTokens];
  int32_t from_prediction;  // 1: they were looked up in the slot's prediction
  int32_t mask_begin;       // of a slot with a grammar: its first row in MaskExchange::masks,
  int32_t num_masks;        // how many of its logits rows have masks in this step,
  int32_t num_decided;      // and how many may be committed
  int32_t drafted_by;       // with SlotParams::lookups: the drafter whose turn was last, which made
                            // the drafts
  DraftState draft;
  int32_t found_by;  // 1 + the look-up that found a long piece of text behind the last commit; or 0
  // Ids that those who learn have taken in: before its slot, of a sequence that was preempted; with
  // SlotParams::lookups also what one of these has taken in since.
  int32_t learnt;
  DraftRates lookup_rates[kMaxDrafters];  // of the drafters in SlotParams::lookups
  BranchState branch;
};

// The tokens of a KV block. Its ids lie in BatchState::token_pages.
struct PageHeader {
  int32_t parent;         // block before it in the sequence that filled it, -1 for the first
  uint32_t parent_epoch;  // the parent's epoch then; another value now: the link is dead
  uint32_t epoch;         // counts how often the block was handed out
  int32_t count;          // valid ids
  // By drafter: leading positions of the block whose entries in its KV are exact. Blocks are
  // shared, so a prefix hit brings them along; what is missing is caught up when drafts are first
  // wanted.
  int16_t draft_counts[kMaxDrafters];
};

// All per-sequence device memory. Slot `num_slots` is the null slot, block 0 the null block.
struct BatchState {
  SlotParams* params;        // [num_slots + 1]
  SlotState* slots;          // [num_slots + 1]
  int32_t* block_tables;     // [num_slots + 1, max_blocks] of token pages and full layers
  int32_t* window_tables;    // the same of windowed layers, stale behind the window; or null
  int32_t* token_pages;      // [num_blocks, block_size]
  PageHeader* page_headers;  // [num_blocks]
  DraftRates* priors;        // [kMaxDrafters] over all sequences of a drafter; new ones start there
  int32_t max_blocks;        // blocks of the longest sequence
  int32_t block_size;
  int32_t num_slots;
  SlotLists lists;
  // The last slots before the null slot are branches, each with blocks of its own behind all others
  // of a group: branch i those from first_branch_block + i * branch_blocks on.
  int32_t num_branches = 0;
  int32_t branch_blocks = 0;
  int32_t first_branch_block = 0;
  int32_t first_branch_window_block = 0;
};

// --- The plan of one step: a ring entry on the host, a copy on the device. ---

struct PlanHeader {
  uint64_t step;  // number of this step, from 0; checked against the device's counter
  int32_t num_spans;
  int32_t num_inits;
  int32_t num_block_updates;
  int32_t num_tokens;
  int32_t num_words;
  int32_t lane_spans = 0;  // where rows lie in two lanes: leading spans whose rows are in the first
  int32_t num_branches = 0;  // most branches that have rows
};

// The rows of one sequence in this step: positions [computed, computed + num_tokens) of its known
// tokens, then, when those reach the last known token, up to max_verified drafts. Reaching the last
// known token is what makes rows want logits; there is no prefill and no decode.
struct SpanPlan {
  int32_t slot;
  int32_t num_tokens;
  int32_t max_verified;
  int32_t num_new_ids;     // ids in PlanView::tokens to write to the token pages; 0 or num_tokens,
                           // and one more behind a chunk whose last row is scored
  int32_t token_offset;    // where they start
  int32_t write_position;  // KV position of the first of them
  int32_t wants_all;       // 1: every row wants logits (prompt logprobs)
  int32_t num_draft_tokens;   // most drafts to propose at the end of the step; 0: none
  int32_t draft_rows;         // most entries of the drafter's KV to catch up at the end of the step
  int32_t num_lookup_tokens;  // most drafts of a drafter in SlotParams::lookups
};

// Resets a slot before the spans are looked at.
struct SlotInit {
  int32_t slot;
  int32_t len;
  int32_t computed;     // tokens found in the prefix cache
  int32_t word_offset;  // in PlanView::words: the logit biases as (id, bits of the bias), the bad
                        // words, with has_allowed_ids mask_words words, then the prediction
  SlotParams params;
  int32_t draft_computed = 0;  // DraftState::computed
};

struct BlockUpdate {
  int32_t slot;
  int32_t index;  // in the slot's block table
  int32_t block;
  uint32_t epoch;    // > 0: freshly handed out, its page header restarts; 0: a prefix hit
  int32_t windowed;  // 1: an entry of window_tables, which has no pages
};

// Where the parts of a plan lie; all pointers into one allocation laid out by plan_view.
struct PlanView {
  PlanHeader* header;
  SpanPlan* spans;             // [max_spans]
  SlotInit* inits;             // [max_spans]
  BlockUpdate* block_updates;  // [max_block_updates]
  int32_t* tokens;             // [max_tokens]
  uint32_t* words;             // [max_words]
};

// Capacities of a plan, fixed at start-up.
struct PlanLimits {
  int32_t max_spans;
  int32_t max_tokens;
  int32_t max_block_updates;
  int32_t max_words;
};

// --- What steps 2..7 compute from a plan; device memory. ---

struct StepCounts {
  int32_t num_rows;         // live token rows
  int32_t num_logits_rows;  // live logits rows
  int32_t num_spans;
  int32_t num_branches;  // spans of branches, behind those
};

struct SpanState {
  int32_t slot;
  int32_t row_begin;  // first token row
  int32_t num_rows;
  int32_t logits_begin;  // first logits row
  int32_t num_logits;    // num_scored, and num_draft_tokens + 1 unless prompt tokens are missing
  int32_t num_draft_tokens;
  int32_t num_scored;  // leading logits rows whose next token is known; only with wants_all
};

// Rows lie in one lane, or in two (PrepareArgs::lane_rows), those of a sequence in one of them:
// then the second lane's rows begin at PrepareArgs::lane_offset of every list below.
struct StepTensors {
  StepCounts* counts;    // of the step; where there are two lanes, behind it those of each lane
  SpanState* spans;      // [max_spans + BatchState::num_branches]
  int32_t* token_ids;    // [max_rows]
  int32_t* positions;    // [max_rows] also the KV position
  int32_t* row_slot;     // [max_rows]
  int32_t* kv_slot;      // [max_rows] block * block_size + offset of the row's KV entry
  int32_t* window_slot;  // [max_rows] the same in windowed layers; or null
  int32_t* logits_rows;  // [max_logits_rows] token row of each logits row
  int32_t* sampled;      // [max_logits_rows] sampled id, or the known one of a scored row; -1: the
                         // row has no valid probability
};

// --- What a step tells the host: a ring entry in pinned memory, copied from the device. ---

struct SpanResult {
  int32_t slot;
  int32_t num_committed;    // ids below; 0 while prompt tokens are missing or after the end
  int32_t num_drafted;      // drafts verified in this step
  int32_t num_accepted;     // drafts among the committed ids; the corrected or bonus id is not one
  int32_t draft_missing;    // entries that the drafter's KV lacks after the commit, at most
  int32_t finish;           // DeviceFinish
  int32_t logits_begin;     // of the span, for ResultView::rows
  int32_t num_scored;       // of the span; rows of committed ids follow them
  int32_t from_prediction;  // 1: the drafts came from the slot's prediction
  int32_t drafter;          // that made the drafts, or had the last turn where there are none
  int32_t found_by;         // SlotState::found_by before the step
  int32_t num_branches;     // that were verified beside the drafts
  int32_t winner;           // 1 + the number of the branch whose drafts were taken; 0: the own ones
  int32_t num_by_branch;    // drafts among the committed ids that it alone had
  int32_t ids[kMaxDraftTokens + 1];
  int32_t drafts[kMaxDraftTokens];  // the num_drafted ids that were verified
};

struct ResultHeader {
  uint64_t step;
  int32_t num_spans;
  int32_t num_rows;
  int32_t num_logits_rows;
};

// Log-probabilities of the id that a logits row sampled or scored, from the logits as the model
// made them.
struct RowLogprobs {
  int32_t id;
  float logprob;
  int32_t rank;     // 1: no id is likelier
  int32_t num_top;  // entries in ResultView::top; kNoLogprobs: the row holds nothing
};

struct TopLogprob {
  int32_t id;
  float logprob;
};

// Capacities of a result, fixed at start-up.
struct ResultLimits {
  int32_t max_spans;
  int32_t max_rows;        // logits rows that can carry logprobs; 0: none can
  int32_t max_top;         // alternatives a row
  int32_t hidden;          // floats of a pooled state; 0: nothing is pooled
  int32_t max_states = 0;  // token rows whose states can be handed back; 0: none
};

// Which rows of ResultView::states a span has.
struct RowsOfStates {
  int32_t begin;
  int32_t count;
};

// When a step ran, in nanoseconds of a clock of the device; an entry of a ring in pinned memory.
struct StepStamps {
  int64_t begin_ns;      // its inputs are looked at
  int64_t published_ns;  // its result is on its way to the host
  int64_t end_ns;        // its drafts are made; valid once a later step is published
};

struct ResultView {
  ResultHeader* header;
  SpanResult* spans;  // [max_spans], in the order of the plan
  RowLogprobs* rows;  // [max_rows] by logits row
  TopLogprob* top;    // [max_rows, max_top], the likeliest first
  float* pooled;      // [max_spans, hidden]; valid where a pooling span ended with kStop
  // Of pooling spans that ended so, where there are max_states; pooled is not read where a span has
  // some.
  RowsOfStates* state_rows;  // [max_spans]
  float* states;             // [max_states, hidden] by token row
};

}  // namespace foretoken
