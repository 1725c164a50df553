#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "model/draft_head.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

// A drafter's output matrix in device memory.
struct OutputRows {
  PackedWeight weight;        // null where the target's is used
  DraftHead::Head head;       // of `weight`, or the target's
  std::vector<int32_t> rows;  // of the whole matrix that it has, all ranks together; empty: all
};

// Loads output matrices of drafters: their own or the target's, whole or cut down to the ids of a
// reduced vocabulary (DraftHeadOptions::vocab_ids); of each this rank has its part of the rows.
// Errors as of WeightLoader.
class OutputRowsLoader {
 public:
  // Everything outlives it; `arena` takes the ids of rows.
  OutputRowsLoader(Device& device, Arena& arena, WeightLoader& loader,
                   const DraftHeadOptions& options, Model& target)
      : device_(device), arena_(arena), loader_(loader), options_(options), target_(target) {}

  // The matrix `name` [rows, cols] of the checkpoint, or a random one. ids: the target id of each
  // row, empty: a row is its id. InvalidArgument where no id of the reduced vocabulary is there.
  Result<OutputRows> own(const std::string& name, int32_t rows, int32_t cols,
                         const std::vector<int32_t>& ids);
  // Rows `ids` of such a matrix whose rows are ids, as far as they are wanted.
  Result<OutputRows> own_rows(const std::string& name, int32_t rows, int32_t cols,
                              const std::vector<int32_t>& ids);
  // The target's.
  Result<OutputRows> shared();

 private:
  // Of a matrix whose rows have `ids` those of the wanted ids, in that order.
  Result<OutputRows> cut(const TensorPart& matrix, int32_t cols, const std::vector<int32_t>& ids,
                         const std::vector<int32_t>& wanted);
  Status upload(const std::vector<int32_t>& ids, const int32_t** out);

  Device& device_;
  Arena& arena_;
  WeightLoader& loader_;
  const DraftHeadOptions& options_;
  Model& target_;
};

}  // namespace foretoken
