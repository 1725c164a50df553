#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "kernels/draft/draft_tensors.h"
#include "model/draft_head.h"
#include "model/model.h"

namespace foretoken {

// What a step of the chains reads.
struct ChainPass {
  int32_t step = 0;  // that drafts token `step` of each, from 0
  const DraftTensors& tensors;
  const DraftHead::Source& taps;
  const BatchState& batch;
  const KvCaches& target;  // its caches; empty where the head reads none
  int32_t max_rows = 0;
};

// A loaded head that drafts a chain of tokens from one hidden state of the target, without keys and
// values of its own. Weights and scratch are taken at load time; forward only enqueues ops and may
// be captured. One queue at a time.
class ChainHead {
 public:
  virtual ~ChainHead() = default;
  virtual int64_t weight_bytes() const = 0;
  virtual int64_t scratch_bytes() const = 0;

  // Enqueues what drafts a token of the chains of the live rows, and returns what output(step)
  // multiplies: [max_rows, its hidden] of the target's type, valid until the next forward. Each row
  // wants logits, in order. In step 0 row r continues the known token tensors.rows.token_ids[r]
  // from row tensors.source[r] of `taps`, the target's state after its final norm at the position
  // before; in later ones the drafted token from row tensors.source[r] of the step before, which
  // the last forward was.
  virtual const void* forward(Queue& queue, const ChainPass& pass) = 0;
  // The output matrix of a step.
  struct Output {
    DraftHead::Head head;
    int32_t hidden = 0;
    float softcap = 0;  // of the logits; 0: none
  };
  virtual Output output(int32_t step) const = 0;
};

// Files of such a head, as far as their config.json says.
struct ChainFiles {
  int32_t max_draft_tokens = 0;
  // Loads what drafts the first `count` tokens of a chain. `target` outlives the head. options:
  // max_model_len, max_rows, attention, dummy, vocab_ids, target_folder, sharding and states.
  // Start-up only.
  std::function<Result<std::unique_ptr<ChainHead>>(Device& device, Model& target, int32_t count,
                                                   const DraftHeadOptions& options)>
      load;
  int32_t max_len = std::numeric_limits<int32_t>::max();  // positions that it can compute
};

// Reads the target's states for a chain's first step.
class TapReader {
 public:
  // ranks: that have the columns of Source::are_parts. `target` outlives it.
  TapReader(const Model& target, const ContextRanks& ranks) : target_(target), ranks_(ranks) {}

  Status take_scratch(Arena& arena, int32_t max_rows);
  // Enqueues out[r] = the state of row r for the live token rows: [max_rows, hidden_size] of
  // `dtype`.
  void read(Queue& queue, const DraftTensors& tensors, const DraftHead::Source& taps,
            int32_t max_rows, void* out, DType dtype) const;

 private:
  const Model& target_;
  const ContextRanks ranks_;
  void* joined_ = nullptr;  // [max_rows, hidden] of the target's type: parts that came together
};

}  // namespace foretoken
