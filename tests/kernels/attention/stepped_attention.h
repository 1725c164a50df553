#pragma once
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "support/row_ops.h"

namespace foretoken::test {

// Rows of one slot at consecutive positions.
struct RowRun {
  int slot;
  int position;
  int rows;
};

// Attention of steps whose rows are runs of slots, over a cache in blocks that lie anywhere.
class SteppedAttention : public RowOpTest {
 protected:
  // Gives each of `num_slots` slots its blocks, in an order drawn at random; block 0 is nobody's.
  void draw_tables(int num_slots, int num_positions, int block_size) {
    block_size_ = block_size;
    max_blocks_ = num_positions / block_size;
    tables_.resize(size_t(num_slots) * max_blocks_);
    std::iota(tables_.begin(), tables_.end(), 1);
    std::shuffle(tables_.begin(), tables_.end(), std::mt19937(3));
  }

  // The rows of the runs, of which the first `live_rows` are live; -1: all.
  void set_rows(const std::vector<RowRun>& runs, int live_rows) {
    positions_.clear();
    slots_.clear();
    for (const RowRun& run : runs) {
      for (int i = 0; i < run.rows; ++i) {
        slots_.push_back(run.slot);
        positions_.push_back(run.position + i);
      }
    }
    live_ = live_rows >= 0 ? live_rows : static_cast<int>(positions_.size());
  }

  // Positions of a slot that some live row sees.
  int seen(int slot) const {
    int end = 0;
    for (int r = 0; r < live_; ++r) {
      if (slots_[r] == slot) end = std::max(end, positions_[r] + 1);
    }
    return end;
  }

  // The tables, but for blocks without anything seen, which do not exist.
  std::vector<int32_t> seen_tables() const {
    std::vector<int32_t> tables(tables_.size(), std::numeric_limits<int32_t>::max());
    for (int slot = 0; slot * max_blocks_ < static_cast<int>(tables_.size()); ++slot) {
      const int end = seen(slot);
      for (int b = 0; b * block_size_ < end; ++b) {
        tables[slot * max_blocks_ + b] = tables_[slot * max_blocks_ + b];
      }
    }
    return tables;
  }

  int block_size_ = 0;
  int max_blocks_ = 0;
  int live_ = 0;
  std::vector<int32_t> tables_, positions_, slots_;
};

}  // namespace foretoken::test
