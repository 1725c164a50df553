#pragma once
#include <vector>

#include "kernels/draft/choose_lengths.h"
#include "kernels/draft/draft_next.h"
#include "kernels/draft/draft_rows.h"
#include "kernels/draft/ngram.h"
#include "kernels/plan_layout.h"
#include "kernels/step/prepare.h"
#include "kernels/step/publish.h"
#include "kernels/step/upload.h"
#include "kernels/step/verify_and_commit.h"
#include "support/test_device.h"

namespace foretoken {

// Sizes of a small batch.
struct StepSizes {
  int32_t num_slots = 4;
  int32_t block_size = 4;
  int32_t max_blocks = 8;  // blocks of a sequence; slot s owns blocks 1 + s * max_blocks ...
  int32_t max_rows = 32;
  int32_t max_logits_rows = 16;
  PlanLimits limits{4, 32, 32, 64};
  ResultLimits result_limits{4, 0, 0, 0};
  int32_t vocab = 64;
  int32_t max_prediction = 32;
  // The last slots, with so many blocks each behind those of all slots.
  int32_t num_branches = 0;
  int32_t branch_blocks = 0;
};

// Everything that the step ops touch, in host vectors.
struct StepData {
  explicit StepData(const StepSizes& step_sizes);

  // Gives the slot a sequence: tokens[0, len) known, `computed` of them in the KV cache.
  void set_sequence(int slot, const std::vector<int32_t>& tokens, int computed);
  void set_drafts(int slot, const std::vector<int32_t>& drafts);
  int32_t& token(int slot, int position);
  std::vector<int32_t> tokens(int slot);
  void add_span(int slot, int num_tokens, int max_verified, int num_draft_tokens = 0,
                int draft_rows = 0);
  PageHeader& page_header(int slot, int position);
  // The KV slot of a position.
  int32_t kv_slot_of(int slot, int position) const;
  // The lists of a slot, with their counts in its parameters.
  void set_logit_bias(int slot, const std::vector<LogitBias>& biases);
  void set_bad_words(int slot, const std::vector<std::vector<int32_t>>& words);
  void set_allowed_ids(int slot, const std::vector<int32_t>& ids);
  void set_prediction(int slot, const std::vector<int32_t>& ids);

  StepSizes sizes;
  std::vector<SlotParams> params;
  std::vector<SlotState> slots;
  std::vector<int32_t> block_tables;
  std::vector<int32_t> window_tables;  // block of the full table plus 100
  std::vector<int32_t> token_pages;
  std::vector<PageHeader> page_headers;
  std::vector<DraftRates> priors;
  std::vector<LogitBias> logit_bias;  // rows of kMaxLogitBias
  std::vector<int32_t> bad_words;     // rows of kMaxBadWordInts
  std::vector<uint32_t> allowed_ids;  // rows of ceil(vocab / 32)
  std::vector<int32_t> prediction;    // rows of max_prediction
  PlanHeader header{};
  std::vector<SpanPlan> spans;
  StepCounts counts{};
  StepCounts lane_counts[2] = {};  // where there are two
  std::vector<SpanState> span_states;
  std::vector<int32_t> token_ids, positions, row_slot, kv_slot, window_slot, logits_rows, sampled;
  ResultHeader result_header{};
  std::vector<SpanResult> results;
  std::vector<RowLogprobs> row_logprobs;
  std::vector<TopLogprob> top;  // rows of result_limits.max_top
  std::vector<float> pooled;    // rows of result_limits.hidden
};

// The rows of a draft pass, as a host copy.
struct DraftPassData {
  StepCounts counts{};
  std::vector<int32_t> token_ids, positions, row_slot, kv_slot, logits_rows, source, seen;
};

// The same on the device, with the arguments of the step ops.
class StepTest : public DeviceTest {
 protected:
  void push(const StepData& data);
  void pull(StepData& data);
  // push, prepare and pull.
  void run_prepare(StepData& data);

  PrepareArgs prepare_args() const;
  VerifyAndCommitArgs verify_and_commit_args() const;
  NgramArgs ngram_args(int num_draft_tokens, int min_n, int max_n, int drafter = 0) const;
  // Not adaptive, and no bound on the length of a sequence.
  ChooseLengthsArgs choose_lengths_args(int drafter = 0) const;
  DraftRowsArgs draft_rows_args(const DraftTensors& out, int max_rows, int drafter = 0) const;
  DraftNextArgs draft_next_args(const DraftTensors& in, const DraftTensors& out, int max_rows,
                                int pass) const;

  // Memory of one draft pass, filled with -5.
  DraftTensors new_draft_tensors(int max_rows);
  // All rows of it, padding included.
  DraftPassData read_pass(const DraftTensors& tensors, int max_rows);

  StepSizes sizes_;
  BatchState batch_{};
  StepTensors tensors_{};
  char* plan_ = nullptr;
  char* result_ = nullptr;
};

}  // namespace foretoken
