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

// The accepted drafts that a look-up brought a sequence in each step of late, in 1/kOne.
struct LookupGain {
  static constexpr int kOne = 256;
  static constexpr int kFirst = 4 * kOne;  // where nothing is known
  // Steps that it looks back on where it falls. Fewer, and a sequence for which a look-up finds
  // drafts now and then loses its turn by chance; more, and room for drafts that do not come costs
  // for longer.
  static constexpr int kMemory = 8;
  // The same where it rises. More, and a text that begins to repeat itself is believed late.
  static constexpr int kRisingMemory = 2;
  // Steps between turns of a sequence that gains too little. Fewer, and its room costs time; more,
  // and a text that begins to repeat itself is noticed late.
  static constexpr int kTurn = 16;
  // The same where it knows a long piece of text behind the sequence's. One, and texts that only
  // seem to repeat themselves have room in all steps.
  static constexpr int kLikelyTurn = 4;
};

// What the running sequences of one drafter could use in the next step.
struct DraftDemand {
  // Sequences whose next span is one token and its drafts. Those for which a look-up has no turn
  // (DraftGrant::min_gain of the step before) do not count here.
  int num_decoding = 0;
  int num_ready = 0;      // of those, the ones whose last span caught up everything
  int num_predicted = 0;  // sequences with a prediction, which count nowhere else here
  int num_listed = 0;  // decoding sequences that have it before another drafter in their lists, and
                       // count as that one's
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
  // Spans with rows or drafts at most; those that are ready go first.
  int max_spans = std::numeric_limits<int>::max();
  // A sequence that is not ready gets rows when it lacks no more entries than this, or when its
  // class is at most max_class.
  int max_missing = 0;
  int max_class = kNumCatchUpClasses - 1;
  // Spans at most that have it before another drafter and may have its drafts.
  int max_lookups = std::numeric_limits<int>::max();
  // Of a look-up: sequences that gained less by it of late (LookupGain) have no turn, but for one
  // in LookupGain::kTurn steps, or kLikelyTurn.
  int min_gain = 0;
};

// Draft passes of a planned step.
struct DraftUse {
  int num_draft_tokens = 0;  // largest num_draft_tokens of its spans
  int catch_up_rows = 0;     // sum of their draft_rows
  int num_spans = 0;         // spans with num_draft_tokens > 0
};

}  // namespace foretoken
