#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"
#include "dialled/dialled_writer.h"

namespace foretoken {
namespace {

// Place of the best match for the end of `history` (the rule of kernels/draft/ngram.h), or -1.
int64_t find_match(const std::vector<int32_t>& history, const NgramDial& dial) {
  const auto size = static_cast<int64_t>(history.size());
  int64_t best = -1;
  int32_t best_length = dial.min_n - 1;
  for (int64_t j = size - 2; j >= 0 && best_length < dial.max_n; --j) {
    int32_t length = 0;
    while (length < dial.max_n && length <= j &&
           history[static_cast<size_t>(j - length)] ==
               history[static_cast<size_t>(size - 1 - length)]) {
      ++length;
    }
    if (length > best_length) {
      best = j;
      best_length = length;
    }
  }
  return best;
}

// Plays one sequence against the n-gram rule and counts its drafts.
void simulate(const NgramDial& dial, DialledPrompt* prompt) {
  std::vector<int32_t> history = prompt->ids;
  const std::vector<int32_t>& truth = prompt->expected_output;
  size_t done = 0;
  while (done < truth.size()) {
    const size_t room = truth.size() - done - 1;
    const size_t wanted = std::min(static_cast<size_t>(dial.num_draft_tokens), room);
    std::vector<int32_t> drafts;
    const int64_t match = find_match(history, dial);
    while (match >= 0 && drafts.size() < wanted) {
      const size_t at = static_cast<size_t>(match) + 1 + drafts.size();
      drafts.push_back(at < history.size() ? history[at] : drafts[at - history.size()]);
    }
    // The first step is the prompt itself: nothing was proposed before it.
    if (done == 0) drafts.clear();
    size_t accepted = 0;
    while (accepted < drafts.size() && drafts[accepted] == truth[done + accepted]) ++accepted;
    prompt->num_drafted += static_cast<int64_t>(drafts.size());
    prompt->num_accepted += static_cast<int64_t>(accepted);
    for (size_t i = 0; i <= accepted; ++i) history.push_back(truth[done + i]);
    done += accepted + 1;
  }
}

// The segment of the cycle that the output runs over, cut after place i where cuts[i] < cut_share,
// its pieces shuffled; then the id before the segment, which starts the output.
DialledPrompt make_prompt(const DialledCycle& cycle, const NgramDial& dial, int64_t start,
                          const std::vector<double>& cuts, double cut_share) {
  std::vector<std::vector<int32_t>> pieces(1);
  DialledPrompt prompt;
  for (int32_t i = 0; i < dial.num_output; ++i) {
    const int32_t id = cycle.at(start + 1 + i);
    prompt.expected_output.push_back(id);
    pieces.back().push_back(id);
    if (cuts[static_cast<size_t>(i)] < cut_share && i + 1 < dial.num_output) pieces.emplace_back();
  }
  std::mt19937_64 engine(dial.seed * 2 + 1);
  for (size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[engine() % i]);
  for (const auto& piece : pieces) prompt.ids.insert(prompt.ids.end(), piece.begin(), piece.end());
  prompt.ids.push_back(cycle.at(start));
  simulate(dial, &prompt);
  return prompt;
}

}  // namespace

Result<DialledPrompt> make_dialled_prompt(const DialledCycle& cycle, const NgramDial& dial) {
  FT_CHECK(dial.num_draft_tokens >= 1 && dial.min_n >= 1 && dial.max_n >= dial.min_n);
  if (dial.acceptance < 0.3 || dial.acceptance > 0.95) {
    return invalid_argument("acceptance " + std::to_string(dial.acceptance) +
                            " is outside 0.3 to 0.95, where counts are evidence");
  }
  if (dial.num_output < 8 || dial.num_output + 2 > cycle.length()) {
    return invalid_argument("an output of " + std::to_string(dial.num_output) +
                            " tokens does not fit the cycle of " + std::to_string(cycle.length()) +
                            "; use 8 tokens to two fewer than the cycle, or a larger vocabulary");
  }
  std::mt19937_64 engine(dial.seed);
  const auto start = static_cast<int64_t>(engine() % static_cast<uint64_t>(cycle.length()));
  std::vector<double> cuts(static_cast<size_t>(dial.num_output));
  for (double& cut : cuts) cut = static_cast<double>(engine() >> 11) * 0x1p-53;
  // More cuts accept less, but not evenly; the best of a fine scan is taken.
  DialledPrompt best;
  double best_error = 2;
  for (int step = 0; step <= 200; ++step) {
    DialledPrompt prompt = make_prompt(cycle, dial, start, cuts, step / 200.0);
    const double error = std::abs(prompt.acceptance() - dial.acceptance);
    if (prompt.num_drafted > 0 && error < best_error) {
      best_error = error;
      best = std::move(prompt);
    }
  }
  if (best_error > 1) {
    return invalid_argument("no drafts would be made with min_n " + std::to_string(dial.min_n) +
                            "; lower it or ask for a longer output");
  }
  return best;
}

std::string dialled_text(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += " t" + std::to_string(id);
  return text;
}

}  // namespace foretoken
