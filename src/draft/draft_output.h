#pragma once
#include <cstdint>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "draft/parts/drafter.h"
#include "draft/parts/plain_slot.h"
#include "kernels/draft/draft_alternatives.h"
#include "kernels/step_types.h"
#include "model/config/config.h"
#include "model/draft_head.h"
#include "model/weights/sharding.h"

namespace foretoken {

// The output matrix of a drafter.
struct OutputMatrix {
  const void* weight = nullptr;     // packed [this rank's part of rows, hidden] of dtype
  const int32_t* id_map = nullptr;  // [rows] target id of each row, -1: none; null: the row itself
  int32_t rows = 0;
  int32_t hidden = 0;
  DType dtype = DType::kF32;
  float softcap = 0;                  // of the logits; 0: none
  Sharding sharding = {};             // that its rows are cut by
  DraftHead::Clusters clusters = {};  // instead of `weight`
};

// That of a head whose layers are as `layer` says.
OutputMatrix output_matrix_of(const DraftHead::Head& head, const ModelConfig& layer);

// How draft tokens come out of a drafter's last states: the likeliest one without writing logits,
// or (`probabilistic`) one sampled from the drafter's distribution with the request's parameters
// and the noise that the target will use at that position, so that a good draft is the target's own
// sample more often. Owns the scratch for that.
class DraftOutput {
 public:
  struct Sizes {
    int32_t max_logits_rows = 0;
    int32_t matrix_rows = 0;  // of the largest matrix
    int32_t target_vocab = 0;
    bool probabilistic = false;
    bool mapped = false;  // some matrix has an id_map
    bool masked = false;  // some steps hold grammars
    bool cut = false;     // some matrix is cut over ranks
    // Of a matrix whose ids lie in clusters, the most; then each row of a pass is a logits row.
    int32_t clusters = 0;
    // Drafts may have alternatives, in passes of so many token rows; 0: they have none.
    int32_t branching_rows = 0;
  };
  DraftOutput(Device& device, const Sizes& sizes);

  Status take();
  int64_t bytes() const { return static_cast<int64_t>(arena_.bytes_taken()); }

  // Of a pass, and where the alternatives of each go (DraftTensors), or null.
  struct Rows {
    const StepTensors& tensors;
    int32_t max_rows;  // logits rows
    DraftAlternative* alternatives = nullptr;
  };
  // Enqueues the choice for the live logits rows: `states` [max_rows, hidden] of the matrix' type,
  // as a model's head_input leaves them; target ids, or -1, go to tensors.sampled. In steps with
  // grammars every draft is sampled, those of slots that have one under their masks.
  void draw(Queue& queue, const OutputMatrix& matrix, const void* states, const Rows& rows,
            const DraftStep& step) const;

 private:
  // Logits rows [offset, offset + max_rows).
  struct Tile {
    const void* states;
    const StepTensors& rows;
    const DraftStep& step;
    int32_t offset;
    int32_t max_rows;
    DraftAlternative* alternatives;
  };
  // What the tile's states are multiplied with: `n` columns, whose results are `y`.
  struct Factor {
    const void* weight;
    int32_t n;
    float* y;
  };
  void await(Queue& queue, const DraftStep& step) const;
  static void await_own(Queue& queue, const DraftStep& step);
  void choose_best(Queue& queue, const OutputMatrix& matrix, const void* states,
                   const StepTensors& rows, int32_t max_rows) const;
  static void multiply_by(Queue& queue, const Factor& factor, const OutputMatrix& matrix,
                          const Tile& tile);
  void multiply(Queue& queue, const OutputMatrix& matrix, const Tile& tile) const;
  void multiply_clusters(Queue& queue, const OutputMatrix& matrix, const Tile& tile) const;
  void sample_tile(Queue& queue, const OutputMatrix& matrix, const Tile& tile) const;
  static void find_alternatives(Queue& queue, const float* logits, int32_t vocab, const Tile& tile);

  Device& device_;
  const Sizes sizes_;
  Arena arena_;
  int32_t tile_ = 0;          // logits rows that are computed at once
  void* argmax_ = nullptr;    // greedy: head_argmax_bytes
  uint64_t* keys_ = nullptr;  // greedy and cut: [max_logits_rows]
  float* part_ = nullptr;     // cut: a rank's columns of logits_
  float* scores_ = nullptr;   // [tile, clusters], where there are some
  PlainSlot plain_;           // of their greedy drafts
  float* logits_ = nullptr;   // probabilistic, masked or of clusters: [tile, matrix_rows]
  float* spread_ = nullptr;   // and where ids are mapped [tile, target_vocab]
};

}  // namespace foretoken
