#pragma once
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/experts/cuda/expert_tiles.cuh"
#include "kernels/experts/expert_gemm.h"

namespace foretoken::cuda {

// Columns of a matrix of experts are counted in pairs of groups: 16 rows of the packed weight,
// which hold 8 gates and their ups where gated.
inline constexpr int kPairRows = 16;

inline constexpr int kSharedExpert = -1;

// Some columns of an expert for some of its entries: what a block computes at once.
struct ExpertPart {
  int expert;       // or kSharedExpert, whose entries are rows
  int first_entry;  // in ExpertLists::entries
  int num_entries;
  int first_pair;
  int num_pairs;
};

// The parts of a block of a grid that streams weights: its share of the columns of what is shared,
// for each tile of rows, and a run of the columns of all tiles of entries, one expert after the
// other. Runs are cut so that every block reads as many bytes, and at experts where that costs
// nothing. Tiles have up to Shape::kEntries entries, parts up to Shape::kPairs pairs.
template <class Shape>
class StreamedParts {
 public:
  // Of what is shared all blocks have a share while the lists are not known; where they are known
  // from the start, the first blocks have that alone, and the others the runs, since a block of few
  // columns has few bytes on their way.
  __device__ explicit StreamedParts(const ExpertGemmArgs& args) : args_(args) {
    if (args.shared.weight != nullptr && args.lists_are_old == 0) {
      take_shared(static_cast<int>(gridDim.x), Shape::kEntries);
    }
  }

  // What is shared, of so many rows; before the lists are known.
  __device__ void open_shared(int live) { live_ = live; }

  // `first` as of ExpertTiles::count_tiles for tiles of kEntries.
  __device__ void open(const int* first, int live) {
    first_ = first;
    live_ = live;
    pairs_ = args_.n / kPairRows;
    if (args_.shared.weight != nullptr) {
      if (args_.lists_are_old != 0) take_shared(apart_ = blocks_of_shared(), live);
      shared_tiles_ = rounded_up(live, Shape::kEntries);
    }
    position_ = run_begin(static_cast<int>(blockIdx.x));
    end_ = run_begin(static_cast<int>(blockIdx.x) + 1);
    int high = args_.lists.count;
    while (high - expert_ > 1) {
      const int middle = (expert_ + high) / 2;
      (first[middle] <= position_ / pairs_ ? expert_ : high) = middle;
    }
  }

  __device__ bool next(ExpertPart& part) {
    if (in_part_ == num_parts_ && !next_tile()) return false;
    const int from = num_pairs_ * in_part_ / num_parts_;
    const int to = num_pairs_ * ++in_part_ / num_parts_;
    part = tile_;
    part.first_pair += from;
    part.num_pairs = to - from;
    return true;
  }

 private:
  // In 32 bits, since a division of 64 takes a hundred instructions and weights wait for these.
  __device__ static int share(int all, int block, int blocks) {
    return all * min(block, blocks) / blocks;
  }
  __device__ static int rounded_up(int a, int b) { return (a + b - 1) / b; }
  __device__ int shared_pairs() const { return args_.shared.n / kPairRows; }
  __device__ int all_pairs() const { return first_[args_.lists.count] * pairs_; }

  // This block's part of what the first `blocks` blocks share.
  __device__ void take_shared(int blocks, int live) {
    const int block = static_cast<int>(blockIdx.x);
    shared_first_ = share(shared_pairs(), block, blocks);
    shared_pairs_ = share(shared_pairs(), block + 1, blocks) - shared_first_;
    shared_tiles_ = 1;
    live_ = live;
  }

  // So many that each reads about as much as one of the others.
  __device__ int blocks_of_shared() const {
    const int blocks = static_cast<int>(gridDim.x);
    const auto shared = static_cast<float>(shared_pairs() * num_atoms(args_.shared.k));
    const float own = static_cast<float>(all_pairs()) * static_cast<float>(num_atoms(args_.k));
    if (own == 0) return blocks;
    const int even = __float2int_rn(static_cast<float>(blocks) * shared / (shared + own));
    return min(max(even, 1), blocks - 1);
  }

  // Where the run of a block begins.
  __device__ int run_begin(int block) const {
    const int all = all_pairs();
    if (all == 0) return 0;
    const int blocks = static_cast<int>(gridDim.x) - apart_;
    if (apart_ > 0) return even_begin(max(block - apart_, 0), blocks, all);
    const int64_t own = num_atoms(args_.k), other = num_atoms(args_.shared.k);
    if (args_.shared.weight != nullptr && args_.rows_are_old == 0 &&
        all * own >= other * 2 * blocks) {
      return run_begin_beside(block, all, own, other);
    }
    return even_begin(block, blocks, all);
  }

  // As long as the longest run is no longer, each tile is cut into runs of its own.
  __device__ int even_begin(int block, int blocks, int all) const {
    const int tiles = first_[args_.lists.count];
    const int of_tile = rounded_up(pairs_, max(rounded_up(all, blocks), 1));
    if (tiles * of_tile > blocks) return share(all, block, blocks);
    const int tile = min(block / of_tile, tiles);
    return tile * pairs_ + (tile < tiles ? pairs_ * (block % of_tile) / of_tile : 0);
  }

  // The same so that what blocks have of the shared matrix counts, too: the longer run goes to
  // those that have fewer pairs of that.
  __device__ int run_begin_beside(int block, int64_t all, int64_t own, int64_t other) const {
    const int64_t cost = (shared_pairs() * other + all * own) * block / gridDim.x;
    const int64_t of_shared = share(shared_pairs(), block, static_cast<int>(gridDim.x)) * other;
    const int64_t begin = (cost - of_shared) / own;
    return static_cast<int>(min(max(begin, int64_t{0}), all));
  }

  __device__ bool next_tile() {
    in_part_ = 0;
    if (shared_tile_ < shared_tiles_ && shared_pairs_ > 0) {
      const int row = shared_tile_++ * Shape::kEntries;
      return cut(kSharedExpert, {row, min(Shape::kEntries, live_ - row)},
                 {shared_first_, shared_pairs_});
    }
    if (position_ >= end_) {
      num_parts_ = 0;
      return false;
    }
    const int tile = position_ / pairs_;
    while (first_[expert_ + 1] <= tile) ++expert_;
    const int* begins = args_.lists.begins + expert_;
    const int entry = begins[0] + (tile - first_[expert_]) * Shape::kEntries;
    const int pair = position_ - tile * pairs_;
    const int count = min(pairs_ - pair, end_ - position_);
    position_ += count;
    return cut(expert_, {entry, min(Shape::kEntries, begins[1] - entry)}, {pair, count});
  }

  // int2: first, count.
  __device__ bool cut(int expert, int2 entries, int2 pairs) {
    tile_ = {expert, entries.x, entries.y, pairs.x, pairs.y};
    num_pairs_ = pairs.y;
    num_parts_ = rounded_up(pairs.y, Shape::kPairs);
    return true;
  }

  const ExpertGemmArgs& args_;
  const int* first_ = nullptr;
  int live_ = 0;
  int apart_ = 0;  // blocks that have what is shared alone
  int shared_first_ = 0, shared_pairs_ = 0, shared_tile_ = 0, shared_tiles_ = 0;
  int pairs_ = 1;                    // of an expert
  int position_ = 0, end_ = 0;       // of the run, in pairs of all tiles
  int expert_ = 0;                   // at position_
  ExpertPart tile_{};                // in which the next part lies,
  int num_pairs_ = 0;                // of the block,
  int in_part_ = 0, num_parts_ = 0;  // which part it is, and of how many
};

// The parts of a block of a grid that reads weights again and again: whole tiles of entries and
// columns, those of the same columns by neighbouring blocks at the same time.
template <class Shape>
class TiledParts {
 public:
  __device__ explicit TiledParts(const ExpertGemmArgs& args)
      : args_(args), index_(static_cast<int>(blockIdx.x)) {}
  __device__ void open_shared(int) {}
  __device__ void open(const int* first, int) { first_ = first; }

  __device__ bool next(ExpertPart& part) {
    if (first_ == nullptr) return false;
    const int pairs = args_.n / kPairRows;
    const ExpertTiles tiles{args_.lists.begins, first_, args_.lists.count, Shape::kEntries,
                            ceil_div(pairs, Shape::kPairs)};
    if (index_ >= tiles.size()) return false;
    const ExpertTile tile = tiles.even(index_);
    const int pair = tile.column_tile * Shape::kPairs;
    part = {tile.expert, tile.first_entry, tile.num_entries, pair,
            min(Shape::kPairs, pairs - pair)};
    index_ += static_cast<int>(gridDim.x);
    return true;
  }

 private:
  const ExpertGemmArgs& args_;
  const int* first_ = nullptr;
  int index_;
};

}  // namespace foretoken::cuda
