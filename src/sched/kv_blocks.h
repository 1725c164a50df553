#pragma once
#include <foretoken/status.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kv/block_pool.h"
#include "kv/host_blocks.h"
#include "kv/prefix_cache.h"
#include "kv/state_snapshots.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace foretoken {

struct KvBlocksConfig {
  int num_blocks = 0;         // of the full group, the null block included
  int num_window_blocks = 0;  // of the windowed group, likewise; 0: no windowed layers
  int window = 0;             // positions that a row of those sees, its own included
  int block_size = 16;
  bool prefix_caching = true;
  bool whole_prompts = false;     // as of SchedulerConfig
  int num_host_blocks = 0;        // that host memory keeps; 0: none, as without prefix caching
  int num_host_windows = 0;       // blocks of the windowed group, likewise
  int num_host_states = 0;        // snapshots of states, likewise
  int max_block_assignments = 0;  // of a plan
  // Of states of recurrent layers; 0: there are no such layers, as without prefix caching.
  int num_snapshots = 0;
  int max_num_seqs = 0;  // with snapshots
};

// What became of images in host memory.
struct HostBlockStats {
  int64_t num_queried_tokens = 0;  // of admitted sequences, beyond what the device alone has
  int64_t num_hit_tokens = 0;      // of these
  std::array<int64_t, kNumHostParts> num_moved_out{};
  std::array<int64_t, kNumHostParts> num_moved_in{};
};

// Which sequence holds which blocks of the two KV groups. The full group keeps everything; the
// windowed group keeps what rows in flight or to come can still see. Positions lie in blocks of the
// same index in both. What is known of a prefix and is to be overwritten, a block of either group
// or a snapshot of states, moves to host memory where that keeps any, and comes back when the
// prefix is asked for. Engine thread only; allocates nothing after construction.
class KvBlocks {
 public:
  explicit KvBlocks(const KvBlocksConfig& config);

  // ResourceExhausted when the sequence could not run even alone; the message names the limit.
  Status check_fits(int prompt_len, int max_len) const;

  // False while a waiting sequence that did not fit cannot fit now either. Costs one look-up at
  // most.
  bool worth_a_look(const Sequence& sequence) const;

  // Gives a waiting sequence its prefix hits when the rest of its known tokens finds blocks too:
  // all of them in the full group; in the windowed group its window and `chunk` more positions,
  // since blocks come free behind it. `alone`: one block is enough there, or those of a prompt that
  // is computed whole. False: it holds nothing.
  bool take_hits(Sequence& sequence, int chunk, bool alone);

  // Behind take_hits, once nothing speaks against the sequence: brings in those hits that lie in
  // host memory, which are hits like others from then on.
  void restore_hits(Sequence& sequence, StepPlan& plan);

  // How many positions the sequence can have in the windowed group before that runs out.
  int window_room(const Sequence& sequence) const;

  // How far a step can take a running sequence: ids stand below `ids_end`, rows below `rows_end`.
  struct Reach {
    int ids_end = 0;
    int rows_end = 0;
  };
  // Takes the blocks for that, or none at all. What a sequence holds is always announced by a span
  // of the same plan.
  bool reserve(Sequence& sequence, Reach reach, StepPlan& plan);
  // Whether `reserve` fails for want of windowed blocks alone.
  bool only_window_is_short(const Sequence& sequence, Reach reach) const;

  // Announces the hits that the sequence took, now that it has a slot.
  void announce_hits(const Sequence& sequence, StepPlan& plan) const;
  // Those that restore_hits will bring counted in.
  int num_hits_to_announce(const Sequence& sequence) const;

  // Makes the leading `num_tokens` tokens findable, whose KV entries are computed or in flight.
  void remember(Sequence& sequence, int num_tokens);

  // The sequence's drafter has exact entries of the leading `num_tokens` tokens, for as long as
  // their blocks are not handed out again.
  void note_exact(Sequence& sequence, int num_tokens);
  // Of the sequence's hits, the leading ones that are known to have such entries.
  int num_exact_hits(const Sequence& sequence) const;

  // Frees what lies behind the window of every row from num_computed on.
  void free_behind_window(Sequence& sequence);

  void release(Sequence& sequence);

  // The end that a chunk of a prompt, which begins at `begin`, is to have at most, since a snapshot
  // of the states behind it will be of use.
  int next_state_end(const Sequence& sequence, int begin) const;
  // A span of a prompt is planned, and its blocks are remembered: where it ends as next_state_end
  // wished, the states behind it will be kept. `drafters`: as of StateSnapshots.
  void note_state(Sequence& sequence, uint8_t drafters) const;
  // The steps in flight leave the states of a sequence behind its first `begin` tokens, or any
  // number up to `end`, as its next step would find them; all these are known. Where a block ends
  // there, and the last snapshot is some way back, they will be kept.
  void note_output_state(Sequence& sequence, int begin, int end);
  // Before a plan is made: what was left by those that have given up their slots is copied first.
  void begin_plan(StepPlan& plan);
  // Plans the copy of what `note_state` or `note_output_state` said of a running sequence, none of
  // whose steps has still to begin.
  void keep_state(Sequence& sequence, StepPlan& plan);
  // The same of a sequence that gives up its slot, in the plan that is being made or the next one.
  void leave_state(Sequence& sequence);
  // Plans the copy of the snapshot behind the hits of a sequence that has a slot now. Returns its
  // leading entries that come with the state of its drafter, `drafter`.
  int bring_state(const Sequence& sequence, StepPlan& plan);
  // What slots were left with will be lost.
  void drop_left_states() { left_states_.clear(); }
  // Between plans: free blocks, and host memory, hold nothing from now on.
  void drop_cached();

  // Before blocks are taken for another plan.
  void end_plan(StepPlan& plan);

  const HostBlockStats& host_stats() const { return host_stats_; }
  int num_groups() const { return windowed_ ? 2 : 1; }
  int blocks_for(int len) const { return (len + config_.block_size - 1) / config_.block_size; }
  const BlockPool& full() const { return full_; }
  // Null without windowed layers.
  const BlockPool* windowed() const { return windowed_ ? &*windowed_ : nullptr; }

 private:
  void find_chain(Sequence& sequence) const;
  void find_images(const Sequence& sequence);
  int max_hits(const Sequence& sequence) const;
  std::span<const int32_t> ids_of(const Sequence& sequence, int index) const;
  BlockId take_block(StepPlan& plan);
  BlockId take_window_block(StepPlan& plan);
  int take_snapshot(BlockId block, uint8_t drafters, StepPlan& plan);
  void move_state_out(BlockId block, StepPlan& plan);
  void restore_blocks(Sequence& sequence, StepPlan& plan);
  void restore_windows(Sequence& sequence, StepPlan& plan);
  void restore_state(const Sequence& sequence, StepPlan& plan);
  void lock_images();
  void settle_host_moves(StepPlan& plan);
  PrefixLink link_behind(const Sequence& sequence, int index) const;
  PrefixLink root(const Sequence& sequence) const;
  PrefixLink parent_of(const Sequence& sequence, PrefixLink behind, int index) const;
  bool finds_window(const Sequence& sequence, int index, bool in_host) const;
  bool finds_state(const Sequence& sequence, int index, bool in_host) const;
  int usable_hits(const Sequence& sequence, int chain_len, bool in_host) const;
  int first_seen_block(int position) const;
  void retain_hits(Sequence& sequence, int num_hits);
  void retain_window(Sequence& sequence, int num_hits);
  bool has_state(BlockId block) const { return !snapshots_ || snapshots_->find(block) >= 0; }
  int last_state_end(const Sequence& sequence) const;
  void plan_state(int slot, const StateToKeep& state, StepPlan& plan);

  // Hits of the last take_hits that lie in host memory.
  struct HostHits {
    std::vector<BlockId> blocks;                  // images behind the blocks on the device
    std::vector<std::pair<int, BlockId>> window;  // index in the sequence, image
    BlockId state = kNullBlock;                   // the image of the snapshot behind them
    int num_device_blocks = 0;                    // hits that there were without host memory
  };

  // Of a slot whose sequence is gone.
  struct LeftState {
    int slot = 0;
    StateToKeep state;
  };

  const KvBlocksConfig config_;
  BlockPool full_;
  std::optional<BlockPool> windowed_;
  PrefixCache cache_;
  std::vector<uint8_t> exact_;  // by block of the full group: bit d stands for drafter d
  std::optional<HostBlocks> host_;
  std::optional<HostBlocks> host_windows_;
  std::optional<HostBlocks> host_states_;
  std::vector<uint64_t> window_names_;  // by block of the windowed group: of the prefix, 0: unknown
  HostHits host_hits_;
  HostBlockStats host_stats_;
  std::optional<StateSnapshots> snapshots_;
  std::vector<LeftState> left_states_;
};

}  // namespace foretoken
