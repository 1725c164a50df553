#pragma once
#include <foretoken/request.h>

#include <vector>

namespace foretoken {

using TokenScores = std::vector<TokenLogprobs>;  // of the tokens of an output

inline constexpr size_t kScoredPrompts = 8;
// Most that log-probabilities may differ by with and without drafts: nothing but how they print.
inline constexpr double kMaxGap = 1e-3;
// And from those of another family of attention, whose sums are rounded otherwise: of float32 (the
// CPU; right ones were within 1e-5, and a bound wrong by one gave 6e-3), and of bfloat16 (GPUs,
// where this shows gross faults alone).
inline constexpr double kMaxReferenceGap = 1e-3;
inline constexpr double kMaxReferenceGapOfBf16 = 0.25;

// Lets the first kScoredPrompts requests ask for the likeliest tokens of each position.
void ask_for_scores(std::vector<Request>& requests);

// The largest difference between log-probabilities of the same tokens at the same positions, of
// outputs in the same order; of each pair of outputs up to where their tokens part. Tokens that one
// of both does not name are left out.
double largest_gap(const std::vector<TokenScores>& a, const std::vector<TokenScores>& b);

}  // namespace foretoken
