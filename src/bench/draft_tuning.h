#pragma once
#include <optional>
#include <string>
#include <vector>

namespace foretoken::bench {

// One way to draft as it was measured at one batch size. `ratios` has its speed over that without
// drafts, a round each; `ratio` is their median, `low` and `high` its interval.
struct TunedLength {
  std::string drafter;
  int num_draft_tokens = 0;  // K, the same in every step
  int batch_size = 1;
  std::vector<double> ratios;
  double ratio = 1;
  double low = 1;
  double high = 1;
  double tokens_per_second = 0;
  double mean_output_len = 0;         // tokens; fewer than asked for where time was short
  double mean_acceptance_length = 1;  // 1 + accepted tokens / drafts
  std::vector<double> acceptance_by_position;
};

// Tokens of an output for runs that take `seconds_a_token` for one token of each, all together, and
// have `seconds`: at least 16, at most `longest`. Example: 300 with 3 seconds at 0.01.
int output_len_that_fits(double seconds, double seconds_a_token, int longest);

// What `foretoken tune` recommends.
struct TunedChoice {
  std::string drafter;
  int num_draft_tokens = 0;  // the longest that is the best at some batch size
  double speed_up = 1;       // geometric mean over batch sizes, 1 where drafts do not pay
};

// Places of those that a race goes on with: the faster half of `ratios`, rounded up, and all within
// 2 % of the last one kept; at least `min_kept`.
std::vector<size_t> faster_half(const std::vector<double>& ratios, size_t min_kept);

// The drafter with the best geometric mean over the batch sizes of its best length there; a batch
// size where none of its lengths is faster than no drafts counts as 1. None: no length of any
// drafter has an interval above 1. Example: at batch 1 "a" has 1.8 with K = 3 and 1.9 with K = 5,
// at batch 16 1.1 with K = 1 and 0.9 with K = 5: it is
// chosen with K = 5 and sqrt(1.9 * 1.1) = 1.45.
std::optional<TunedChoice> choose_drafts(const std::vector<TunedLength>& lengths);

// Of `first` to `last` sequences at once each gets so many drafts; 0: none.
struct TunedRange {
  int first = 1;
  int last = 1;
  int num_draft_tokens = 0;
  friend bool operator==(const TunedRange&, const TunedRange&) = default;
};

// The drafter's best length at each batch size, none where it is not shown to be faster than no
// drafts. Between two batch sizes the smaller one counts up to the root of their product; ranges
// with equal lengths are one. Example: with the best lengths 5, 3 and 0 at batch 1, 4 and 64: 1 to
// 2 have 5, 3 to 16 have 3, and 17 to 64, and more, none.
std::vector<TunedRange> lengths_by_batch(const std::vector<TunedLength>& lengths,
                                         const std::string& drafter);

// The geometric mean of speeds over no drafts, a measurement each; of none 1.
double mean_speed_up(const std::vector<TunedLength>& lengths);

// A line for each drafter, length and batch size.
std::string tuning_table(const std::vector<TunedLength>& lengths);

// A panel for each batch size: the speed of each length over that without drafts, with its
// interval; an SVG picture.
std::string tuning_svg(const std::vector<TunedLength>& lengths, const std::string& title);

}  // namespace foretoken::bench
