#pragma once
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "draft/block_pass.h"
#include "draft/draft_history.h"
#include "draft/draft_output.h"
#include "draft/parts/drafter.h"
#include "draft/parts/plain_slot.h"
#include "kernels/step_types.h"
#include "model/block_head.h"

namespace foretoken {

// How drafts come out of a block whose logits depend on the drafts before (the Markov head of
// DSpark, the recurrent unit of Domino): the output matrix multiplies all rows at once; then draft
// by draft a small matrix adds what the draft before, or all of them, make likely, and the draft is
// chosen: the likeliest id, or
// (`probabilistic`) one sampled as DraftOutput does. With least_confidence > 0 a slot's drafts end
// before the first whose confidence is below it. Owns the scratch for that.
class MarkovOutput {
 public:
  struct Sizes {
    int32_t max_spans = 0;
    int32_t max_draft_tokens = 0;
    int32_t matrix_rows = 0;
    int32_t target_vocab = 0;
    bool mapped = false;  // the matrix has an id_map
    int32_t hidden = 0;
    DType dtype = DType::kF32;  // of the head
    bool probabilistic = false;
    bool is_cut = false;  // the matrix is cut over ranks
    bool leads = false;   // the block's first row, of the last known token, drafts nothing
    float least_confidence = 0;
  };
  // `markov` outlives this.
  MarkovOutput(Device& device, const Sizes& sizes, const BlockHead::Markov& markov);

  Status take();
  int64_t bytes() const { return static_cast<int64_t>(arena_.bytes_taken()); }

  // Enqueues the choice for all rows of the block that draft; ids go to block.drawn().sampled.
  // `states` as a head's head_input leaves them.
  void draw(Queue& queue, const OutputMatrix& matrix, const void* states, const BlockPass& block,
            const DraftStep& step, const DraftShape& shape) const;

 private:
  // What the ops of one call have in common.
  struct Pass {
    Queue& queue;
    const void* states;
    const StepTensors drawn;  // of the block
    const DraftStep& step;
    int32_t max_spans;
    int32_t max_logits_rows;
  };
  void multiply(const Pass& pass, const OutputMatrix& matrix) const;
  void lay_out(const Pass& pass, const OutputMatrix& matrix, int draft) const;
  void embed_before(const Pass& pass, int draft) const;
  void add_before(const Pass& pass, int draft) const;
  void rate(const Pass& pass) const;
  void choose(const Pass& pass, const OutputMatrix& matrix) const;
  struct RowsIn {
    const void* rows;
    const int32_t* from;
    DType dtype;
    int32_t width;
  };
  struct RowsOut {
    void* rows;
    DType dtype;
    int32_t stride;
    int32_t offset;
  };
  void move(const Pass& pass, const RowsIn& in, const RowsOut& out) const;
  // Whether ids are sampled as the target's.
  bool spreads() const { return sizes_.probabilistic && sizes_.mapped; }
  bool rates() const { return sizes_.least_confidence > 0 && markov_.confidence != nullptr; }

  Device& device_;
  const Sizes sizes_;
  const BlockHead::Markov markov_;
  const int32_t rank_;
  const int32_t embedding_width_;
  Arena arena_;
  std::optional<DraftHistory> history_;  // of all drafts before
  // "act" stands for the type of the head.
  float* base_ = nullptr;        // [max_spans * max_draft_tokens, rows] without the draft before
  float* part_ = nullptr;        // the same of a rank's columns, where the matrix is cut
  float* logits_ = nullptr;      // [max_spans, rows] of one draft
  float* spread_ = nullptr;      // [max_spans, target vocab] where sampled ids are mapped
  float* embedded_ = nullptr;    // [max_spans, embedding's columns]
  void* markov_rows_ = nullptr;  // [max_spans, rank] act
  void* features_ = nullptr;     // [max_spans, what a confidence reads] act
  float* confidence_ = nullptr;  // [max_spans]
  StepTensors rows_{};           // of one draft
  int32_t* from_ = nullptr;      // [max_spans] logits row of the block
  PlainSlot plain_;              // of choices that are the likeliest ids
};

}  // namespace foretoken
