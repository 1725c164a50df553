#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/block_pool.h"

namespace foretoken {

// Which snapshots of recurrent layers' states are kept: what a sequence has in those layers behind
// the last position of a cached block, whose companion the snapshot is. It goes with the block's
// contents, or when another one needs its place, the least recently used first. Numbers from 0 on,
// never bytes. What a plan writes or reads stays until `end_plan`, so that a plan's copies need no
// order but those to snapshots first. Engine thread only; allocates nothing after construction.
class StateSnapshots {
 public:
  // `num_blocks`: of the pool whose blocks have companions. `max_locked`: snapshots that one plan
  // writes or reads at most.
  StateSnapshots(int num_snapshots, int num_blocks, int max_locked);

  int num_snapshots() const { return pool_.num_usable(); }
  int num_kept() const { return num_kept_; }

  // The snapshot behind a block; -1: there is none.
  int find(BlockId block) const { return of_block_[static_cast<size_t>(block)] - 1; }
  // Bit d: drafter d's own state is in it, behind the same position.
  uint8_t drafters(int snapshot) const { return drafters_[static_cast<size_t>(snapshot) + 1]; }

  // Whether the plan writes or reads it.
  bool is_locked(int snapshot) const { return pool_.num_refs(snapshot + 1) > 0; }

  // Whether `take` finds a place.
  bool has_place() const;
  // The block whose snapshot gives up its place to the next one; null: none has to.
  BlockId next_to_go() const;
  // A place for the snapshot behind a block that has none; -1: the plan uses all.
  int take(BlockId block, uint8_t drafters);
  // Keeps a snapshot as it is until the plan ends; it is the last used one then.
  void lock(int snapshot);
  // The block's contents die, or its snapshot is of no use any more.
  void forget(BlockId block);

  // The plan is made.
  void end_plan();

 private:
  // Places are blocks of a pool, from 1 on: free ones hold a snapshot, the oldest first. The vacant
  // ones, which hold none, are held themselves.
  BlockPool pool_;
  std::vector<int> vacant_;
  std::vector<int> locked_;
  std::vector<int> of_block_;      // by block: the place, 0: none
  std::vector<BlockId> block_of_;  // by place; null: it is vacant
  std::vector<uint8_t> drafters_;  // by place
  int num_kept_ = 0;
};

}  // namespace foretoken
