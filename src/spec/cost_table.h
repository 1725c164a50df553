#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spec/draft_budget.h"
#include "spec/time_shares.h"

namespace foretoken {

// What a table may hold.
struct CostLimits {
  // 18 minutes. Higher, and products of times and sizes leave 64 bits.
  static constexpr int64_t kMaxNs = int64_t{1} << 40;
  // Rows or sequences of a step.
  static constexpr int kMaxSize = 1 << 20;
  // That the sequences of a step know together; times kMaxPicoseconds they stay within 64 bits.
  static constexpr int64_t kMaxTokens = int64_t{1} << 32;
  // 1 ms a token.
  static constexpr int64_t kMaxPicoseconds = 1'000'000'000;
};

// Nanoseconds by size (rows or sequences): from the first measured point down constant, beyond the
// last one with the slope of the last two, and between two of them linear; but above the line where
// slopes fall from the segment before it to the one behind it. Such times are concave, as those of
// rows that touch more and more of a mixture's experts (E (1 - (1 - k / E)^rows) of them), and lie
// between that line and what both outer slopes allow; a third of the way up, which is exact for a
// parabola halfway between points that double. Times never fall as sizes grow.
class TimeCurve {
 public:
  struct Point {
    int size = 0;
    int64_t ns = 0;
    bool operator==(const Point&) const = default;
  };

  // Adds a measured point; sizes grow from call to call. A time below the one before is raised to
  // that.
  void add(int size, int64_t ns);
  // 0 for size 0 and for a curve without points.
  int64_t at(int size) const;
  bool empty() const { return points_.empty(); }
  std::span<const Point> points() const { return points_; }
  bool operator==(const TimeCurve&) const = default;

 private:
  std::vector<Point> points_;
};

struct DrafterTimes {
  std::string name;
  bool one_pass = false;  // see DrafterTraits: all drafts cost one pass
  TimeCurve catch_up;     // first pass by its rows; empty: the drafter has no KV
  TimeCurve pass;         // one later pass (with one_pass, the only one) by sequences
  // Of those two, what sequences take that know CostTable::short_tokens; empty: as much.
  TimeShares short_catch_up = {};
  TimeShares short_pass = {};
  // Whether they can tell the cost of proposals of such a drafter.
  bool covers(bool has_kv, bool is_one_pass, int max_draft_tokens) const {
    return one_pass == is_one_pass && catch_up.empty() != has_kv &&
           !(pass.empty() && (!has_kv || max_draft_tokens > 1));
  }
  bool operator==(const DrafterTimes&) const = default;
};

// Steps whose sequences each have room for so many drafts, by sequences. Devices whose kernels are
// chosen by the room hardly gain by drafts that are missing; others take as long as live rows do.
struct VerifyTimes {
  int drafts = 0;
  TimeCurve idle;  // no sequence has drafts
  TimeCurve full;  // all have as many as there is room for
  bool operator==(const VerifyTimes&) const = default;
};

// What a token that a sequence knows adds to its step, with room for so many drafts.
struct ContextTime {
  int drafts = 0;
  int64_t picoseconds = 0;
  bool operator==(const ContextTime&) const = default;
};

// Of a step whose sequences each have so many drafts, what it takes where they know
// CostTable::short_tokens, by sequences.
struct ShortTime {
  int drafts = 0;
  TimeShares shares;
  bool operator==(const ShortTime&) const = default;
};

// What steps cost: measured at start, or read from a file so that all runs decide alike. Any thread
// may read it.
struct CostTable {
  std::string measured_on;  // device, model and ranks; empty: not told
  TimeCurve target;         // a step without drafts, by token rows, all of which want logits
  // By growing numbers of drafts, the first 0. Empty: unknown, rows tell it all.
  std::vector<VerifyTimes> verify;
  std::vector<DrafterTimes> drafters;
  // By growing numbers of drafts, for tokens beyond as many as the sequences of all other times
  // know. Empty: unknown, taken for nothing.
  std::vector<ContextTime> context;
  int known_tokens = 0;
  // By growing numbers of drafts, for sequences that know fewer tokens than those of all other
  // times: a line leads from these times to those. Empty: unknown, taken for as many.
  std::vector<ShortTime> short_steps;
  int short_tokens = 0;  // fewer than known_tokens; 0: nothing is known of them
  // Ratios of times may hold, their unit may be far off: at most one step was measured.
  bool is_guess = false;
  // Measured in an instant, beside whatever else the machine did: a time may be many times what the
  // step takes.
  bool is_brief = false;
  // Whether what steps take is to be believed rather than this.
  bool is_rough() const { return is_brief && !is_guess; }

  // What `num_seqs` sequences that know `num_tokens` tokens together add to `step_ns`, the time of
  // their step; negative where they know little. Without that time 0 there.
  int64_t context_ns(int num_seqs, int drafts, int64_t num_tokens, int64_t step_ns = 0) const;

  // A step of `num_seqs` sequences that decode, with room for `granted` drafts together, of which
  // `live` exist.
  int64_t step_ns(int num_seqs, int64_t granted, int64_t live) const;

  // What drafter `index` adds to a step whose sequences know so many tokens each.
  int64_t draft_ns(int index, const DraftUse& use,
                   int64_t tokens_each = CostLimits::kMaxTokens) const;
  // Of that its first pass over so many rows.
  int64_t catch_up_ns(int index, int rows, int64_t tokens_each) const;
  // The array that the device chooses lengths with: [i] is the time of a step of i rows where about
  // `num_seqs` sequences have room for `drafts` each. Between a step without drafts and one with
  // all it goes as steps do that have room for just their drafts: those of `verify` were measured
  // with more care than `target`.
  std::vector<int32_t> row_ns(int num_seqs, int drafts, int max_rows) const;
  // A table to read, one line a size.
  std::string text() const;
  bool operator==(const CostTable&) const = default;

 private:
  // What sequences that know so many tokens each spare of `ns`, of which they take `share` where
  // they know short_tokens.
  int64_t spared_ns(int64_t ns, int64_t share, int64_t tokens_each) const;
  int64_t short_share(int num_seqs, int drafts) const;

  struct RowTime {
    int64_t rows = 0;
    int64_t ns = 0;
  };
  // Between two times that were measured, `rows` rows. It goes as `target` does, which has more
  // sizes: a device whose kernels work in tiles jumps where one more row begins another tile.
  int64_t between_rows(RowTime low, RowTime high, int64_t rows) const;
  // A curve of `verify`, by sequences with room for `drafts` each.
  int64_t verify_ns(const TimeCurve& curve, int num_seqs, int drafts) const;
};

}  // namespace foretoken
