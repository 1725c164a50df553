#pragma once
#include <cstdint>

#include "base/result.h"
#include "model/layer/layer_rows.h"

namespace foretoken {

// What the attention ops of layers share, whatever their mixer makes queries and keys of.
struct AttentionScratch {
  float* workspace = nullptr;  // [workspace_floats]
  int64_t workspace_floats = 0;
  uint32_t* sync = nullptr;  // of AttentionArgs
  const AttentionBackend* backend = nullptr;
  // Ranks that share the positions, and what attention over all of them needs: the queries of the
  // heads of all, and what each of those saw here.
  ContextRanks context;
  void* queries = nullptr;  // [max_rows, context.size * num_heads * head_dim] act
  float* states = nullptr;  // of AttentionArgs

  // For layers of at most `num_heads` query heads, whose keys have at most `head_dim` elements.
  Status take(const ScratchSource& source, int32_t num_heads, int32_t head_dim);
  // What an op over these rows is told whichever layer it is of. Its mixer adds q, out, num_heads
  // and what becomes of scores.
  AttentionArgs args_of(const LayerRows& rows, const LayerKv& kv) const;
  // Enqueues attention of the rank's heads over all positions. Slopes lie among those of the heads
  // of all ranks.
  void run(const LayerRows& rows, const AttentionArgs& args) const;
};

}  // namespace foretoken
