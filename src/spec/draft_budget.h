#pragma once
#include <foretoken/limits.h>

#include <array>
#include <cstdint>
#include <limits>

namespace foretoken {

// What scheduler and length policy tell each other about drafts, by drafter. Plain counts.

// A sequence that is not caught up is rated by what catching up costs it: class c holds those that
// lack at most 2^(c - 4) entries for each token that they can be expected to emit still, the last
// class all others.
inline constexpr int kNumCatchUpClasses = 14;

// The accepted drafts that a look-up brought a sequence in each step of late in which it had room,
// in 1/kOne, and classes of that: class 0 below kOne/32, each further one up to twice as much.
struct LookupGain {
  static constexpr int kOne = 256;
  static constexpr int kNumClasses = 10;
  // Where nothing is known. Higher, and texts that do not repeat themselves have room for long;
  // lower, and large batches never try.
  static constexpr int kFirst = 2 * kOne;
  // At least, where a long piece of text was found that was not before: such sequences can have
  // room alone.
  static constexpr int kFound = 4 * kOne;
  // Steps that it looks back on where it falls. Fewer, and a sequence for which drafts are found
  // now and then loses its room by chance; more, and room for drafts that do not come costs for
  // longer.
  static constexpr int kMemory = 8;
  // The same where it rises. More, and a text that begins to repeat itself is believed late.
  static constexpr int kRisingMemory = 2;
  // Steps between tries of a sequence that gains too little: the more the dearer room is, and where
  // no further requests come, as the others wait for its end. Fewer, and its room costs time; more,
  // and a text that repeats short pieces is noticed late.
  static constexpr int turn_of(int min_class, bool others_come) {
    return (others_come ? 4 : 32) << (min_class < 5 ? min_class : 5);
  }

  static constexpr int class_of(int gain) {
    int result = 0;
    while (result < kNumClasses - 1 && gain >= kOne / 32 << result) ++result;
    return result;
  }
};
using NumByGain = std::array<int, LookupGain::kNumClasses>;

// What the running sequences of one drafter could use in the next step.
struct DraftDemand {
  int num_decoding = 0;   // sequences whose next span is one token and its drafts
  int num_ready = 0;      // of those, the ones whose last span caught up everything
  int num_predicted = 0;  // sequences with a prediction, which count nowhere else here
  int num_listed = 0;  // decoding sequences that have it before another drafter in their lists, and
                       // count as that one's
  // Of a look-up: of the decoding sequences, and of the listed ones, by LookupGain::class_of.
  NumByGain num_gaining{};
  NumByGain num_listed_gaining{};
  int num_coming = 0;  // sequences whose prompt is not computed yet, and those that wait for a slot
  // Of the decoding ones that are not ready, by class: how many, and the entries they lack at most.
  std::array<int, kNumCatchUpClasses> num_resting{};
  std::array<int64_t, kNumCatchUpClasses> num_missing{};
  int fewest_missing = 0;  // entries that the one of them lacks that lacks the fewest; 0: none
};

// The same of a whole step.
struct BatchDemand {
  int num_sequences = 0;  // with and without a drafter: running, or waiting and a slot is free
  int num_decoding = 0;
  int num_waiting = 0;  // for a slot
  // Those that run or come, but for the ones that only wait for their end, and the tokens that they
  // know or, while a prompt is computed, will know.
  int num_counted = 0;
  int64_t num_tokens = 0;
  std::array<DraftDemand, kMaxDrafters> drafters{};
};

// What the length policy grants the spans of one drafter in a step.
struct DraftGrant {
  int num_draft_tokens = 0;  // most drafts a sequence; 0 with rows: entries are caught up only
  int catch_up_rows = 0;     // of all its spans together; 0: the drafter rests, unless it has no KV
  int num_branches = 0;      // that its drafts may have beside them, in this step and the next one
  // Spans with rows or drafts at most; those that are ready go first.
  int max_spans = std::numeric_limits<int>::max();
  // A sequence that is not ready gets rows when it lacks no more entries than this, or when its
  // class is at most max_class.
  int max_missing = 0;
  int max_class = kNumCatchUpClasses - 1;
  // Spans at most that have it before another drafter and may have its drafts.
  int max_lookups = std::numeric_limits<int>::max();
  // Without KV: sequences whose gain is of a lower class have no room, but for one of
  // LookupGain::turn_of in a step. `min_listed_class`: of those that have it before another
  // drafter.
  int min_class = 0;
  int min_listed_class = 0;
  bool others_come = true;  // requests wait, or have prompts to compute
};

// Draft passes of a planned step.
struct DraftUse {
  int num_draft_tokens = 0;  // largest num_draft_tokens of its spans
  int catch_up_rows = 0;     // sum of their draft_rows
  int num_spans = 0;         // spans with num_draft_tokens > 0
  int num_branches = 0;      // that may begin
};

}  // namespace foretoken
