#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kv/prefix_cache.h"
#include "spec/draft_budget.h"

namespace foretoken {

enum class SequenceState : uint8_t {
  kWaiting,   // no slot; may have been preempted
  kRunning,   // holds a slot and blocks
  kFinished,  // gets no more spans; its slot and blocks stay until no step in flight uses them
  kReleased,  // holds nothing
};

// The states of a slot as they stand behind a cached block, for a snapshot.
struct StateToKeep {
  BlockId block = kNullBlock;  // null: there is nothing to keep
  uint32_t epoch = 0;          // of the block
  uint8_t drafters = 0;        // as of StateSnapshots
};

// The scheduler's record of one running request. Made by the submitting thread with all vectors
// reserved for max_len (window_blocks only where the model has windowed layers); then owned by the
// engine thread until it is released.
struct Sequence {
  // Set by the creator.
  uint64_t id = 0;
  std::vector<int32_t> tokens;  // prompt, then reconciled output
  int prompt_len = 0;
  int max_len = 0;            // prompt + max_tokens, at most max_model_len; the prompt with `pools`
  int min_len = 0;            // it ends before only when it is given up; 0: nothing is known
  int max_draft_tokens = 0;   // drafts a step at most, 0: no speculation
  int drafter = 0;            // index of the drafter that serves it; the last of a list
  uint32_t lookups = 0;       // bit d: drafter d goes before that one, where it finds something
  bool is_predicted = false;  // that drafter looks up a prediction of its output
  uint64_t cache_salt = 0;
  int adapter = 0;                     // the engine's number of its adapter; 0: it has none
  int adapter_begin = 0;               // tokens before it are without the adapter
  int priority = 0;                    // lower runs first under the priority policy
  int num_init_words = 0;              // variable parameters that its first span uploads
  uint32_t features = 0;               // StepFeature bits that its spans need
  bool scores_prompt = false;          // every prompt row wants logits
  bool pools = false;                  // ends when its prompt is computed, without output
  bool bypasses_prefix_cache = false;  // takes no hits; what it fills may still be hit
  bool may_pause = false;              // a step that samples it may commit nothing
  bool is_held = false;                // gets no span while it runs; may change between plans
  void* owner = nullptr;               // the engine's record; the scheduler only passes it on

  // Kept by the scheduler.
  SequenceState state = SequenceState::kWaiting;
  bool draining = false;  // to be preempted as soon as no step in flight uses it
  // The last known token is scheduled: from here on a step extends the sequence by one token row
  // and its drafts.
  bool caught_up = false;
  int slot = -1;
  int adapter_slot = -1;   // while it runs, its adapter's place on the device
  int num_scheduled = 0;   // known tokens whose KV entries are computed or in flight
  int num_computed = 0;    // reconciled: no row of a step in flight or to come lies before it
  int num_scored = 0;      // leading prompt rows whose logits were wanted in reconciled steps
  int num_inflight = 0;    // steps in flight that hold a span of it
  uint64_t last_plan = 0;  // counts plans: the last one that did
  int num_sampling = 0;    // those of them that commit at least one id unless it ends or pauses
  int inflight_bound = 0;  // most ids that those can commit
  int draft_bound = 0;     // most drafts that stand on the device for its next span
  int lookup_gain = LookupGain::kFirst;  // see there
  bool had_lookups = false;              // its next span may verify drafts of a look-up
  bool lookup_is_likely = false;         // one knows a long piece of text behind its own
  int draft_floor =
      0;  // its drafter's entries before it are exact, or will be in the queue's order
  bool draft_caught_up = false;  // its last span caught up everything, whatever the device found
  int num_exact_blocks = 0;      // leading blocks known to hold its drafter's exact entries
  std::vector<BlockId> blocks;
  // Of the windowed group, with the same indices: null behind the window, where nothing reads.
  std::vector<BlockId> window_blocks;
  int num_freed_window_blocks = 0;  // leading null entries of those
  int num_cached_blocks = 0;        // leading blocks known to the prefix cache
  PrefixLink cache_tail;            // link after those
  // Where recurrent layers keep states. The end of its chain of cached blocks, where a snapshot was
  // missing: others will come there again; 0: none was.
  int branch = 0;
  int last_state_len = 0;    // tokens before its last snapshot, made or found
  StateToKeep kept_state;    // to be copied before its slot is used again
  StateToKeep output_state;  // the snapshot of its output so far
  // Free blocks of either group that admission was last found to take; 0: not looked at yet.
  int num_blocks_wanted = 0;
  int num_window_blocks_wanted = 0;
  int num_preemptions = 0;
  int policy_priority = 0;  // the request's under the priority policy, otherwise 0
  uint64_t arrival = 0;     // counts sequences as they came in; kept when it is preempted
  // Links of WaitingQueue.
  Sequence* child = nullptr;
  Sequence* next = nullptr;
  Sequence* prev = nullptr;
  Sequence* next_aside = nullptr;  // link of those that a plan passes over

  int known_len() const { return static_cast<int>(tokens.size()); }
  // Length at the start of the next step: at most this, and at least len_floor() unless it paused.
  int len_bound() const { return std::min(known_len() + inflight_bound, max_len); }
  int len_floor() const { return std::min(known_len() + num_sampling, max_len); }
  // The same where pauses count.
  int sure_len() const { return may_pause ? known_len() : len_floor(); }
};

// The order in which sequences are admitted and planned; the last one is preempted first.
inline bool runs_before(const Sequence& a, const Sequence& b) {
  return a.policy_priority != b.policy_priority ? a.policy_priority < b.policy_priority
                                                : a.arrival < b.arrival;
}

}  // namespace foretoken
