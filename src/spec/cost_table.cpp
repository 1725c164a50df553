#include "spec/cost_table.h"

#include <algorithm>
#include <bit>
#include <iomanip>
#include <limits>
#include <sstream>

#include "base/check.h"

namespace foretoken {
namespace {

// The first of the two points around `size`, or of the last two where it lies beyond; of two at
// least, the first of which is smaller than `size`.
size_t point_before(std::span<const TimeCurve::Point> points, int size) {
  const auto high = std::lower_bound(
      points.begin() + 1, points.end() - 1, size,
      [](const TimeCurve::Point& point, int wanted) { return point.size < wanted; });
  return static_cast<size_t>(high - points.begin()) - 1;
}

// What the point lacks to the bounds that a concave curve has between two points: the lines through
// the two points before and through those behind. 0 where slopes do not fall.
int64_t room_above(std::span<const TimeCurve::Point> points, size_t low, int size) {
  if (low == 0 || low + 2 >= points.size()) return 0;
  struct Segment {
    int64_t size, ns;
    int64_t rise(int64_t over) const { return ns * over / size; }
    bool is_steeper(const Segment& than) const { return ns * than.size > than.ns * size; }
  };
  const auto ending_at = [&](size_t i) {
    return Segment{points[i].size - points[i - 1].size, points[i].ns - points[i - 1].ns};
  };
  const Segment before = ending_at(low), here = ending_at(low + 1), behind = ending_at(low + 2);
  if (!before.is_steeper(here) || !here.is_steeper(behind)) return 0;
  const int64_t from_low = size - points[low].size;
  const int64_t to_high = points[low + 1].size - size;
  return std::max<int64_t>(std::min(before.rise(from_low) - here.rise(from_low),
                                    here.rise(to_high) - behind.rise(to_high)),
                           0);
}

// The value at `at` on the line from (0, a) to (length, b). b - a and length are up to 2^40.
int64_t between(int64_t a, int64_t b, int64_t at, int64_t length) {
  if (length <= 0) return a;
  const auto width = static_cast<int>(std::bit_width(static_cast<uint64_t>(length)));
  const int shift = std::max(width - 20, 0);
  return a + (b - a) * (at >> shift) / (length >> shift);
}

void append_curve(std::ostream& text, const std::string& title, const char* unit,
                  const TimeCurve& curve) {
  for (const TimeCurve::Point& point : curve.points()) {
    text << std::left << std::setw(28) << title << std::right << std::setw(7) << point.size << ' '
         << std::left << std::setw(10) << unit << std::right << std::setw(8) << point.ns / 1000000
         << '.' << std::setfill('0') << std::setw(3) << point.ns / 1000 % 1000 << std::setfill(' ')
         << " ms\n";
  }
}

void append_shares(std::ostream& text, const std::string& title, const char* unit, int short_tokens,
                   const TimeShares& shares) {
  for (const TimeShares::Point& point : shares.points()) {
    text << std::left << std::setw(28) << title << std::right << std::setw(7) << point.size << ' '
         << std::left << std::setw(10) << unit << std::right << std::setw(8)
         << point.share * 100 / TimeShares::kOne << " % of that with " << short_tokens
         << " tokens known\n";
  }
}

}  // namespace

void TimeCurve::add(int size, int64_t ns) {
  FT_CHECK(size > 0 && ns >= 0 && (points_.empty() || size > points_.back().size));
  if (!points_.empty()) ns = std::max(ns, points_.back().ns);
  points_.push_back({size, std::min(ns, CostLimits::kMaxNs)});
}

int64_t TimeCurve::at(int size) const {
  if (size <= 0 || points_.empty()) return 0;
  if (size <= points_.front().size || points_.size() == 1) return points_.front().ns;
  const size_t before = point_before(points_, size);
  const Point &low = points_[before], &high = points_[before + 1];
  const int64_t ns = low.ns + (high.ns - low.ns) * (size - low.size) / (high.size - low.size);
  return std::min(ns + room_above(points_, before, size) / 3, CostLimits::kMaxNs);
}

int64_t CostTable::draft_ns(int index, const DraftUse& use, int64_t tokens_each) const {
  const DrafterTimes& times = drafters[static_cast<size_t>(index)];
  const int64_t first = catch_up_ns(index, use.catch_up_rows, tokens_each);
  if (use.num_draft_tokens == 0) return first;
  const int num_passes =
      times.one_pass ? 1 : use.num_draft_tokens - (times.catch_up.empty() ? 0 : 1);
  const int64_t pass = times.pass.at(use.num_spans);
  return first +
         num_passes * (pass - spared_ns(pass, times.short_pass.at(use.num_spans), tokens_each));
}

int64_t CostTable::catch_up_ns(int index, int rows, int64_t tokens_each) const {
  const DrafterTimes& times = drafters[static_cast<size_t>(index)];
  const int64_t ns = times.catch_up.at(rows);
  return ns - spared_ns(ns, times.short_catch_up.at(rows), tokens_each);
}

int64_t CostTable::spared_ns(int64_t ns, int64_t share, int64_t tokens_each) const {
  if (short_tokens <= 0 || short_tokens >= known_tokens) return 0;
  const int64_t most = known_tokens - short_tokens;
  const int64_t missing = std::clamp<int64_t>(known_tokens - tokens_each, 0, most);
  return ns * (TimeShares::kOne - share) / TimeShares::kOne * missing / most;
}

int64_t CostTable::short_share(int num_seqs, int drafts) const {
  if (short_steps.empty()) return TimeShares::kOne;
  size_t high = 0;
  while (high + 1 < short_steps.size() && drafts > short_steps[high].drafts) ++high;
  const ShortTime& above = short_steps[high];
  const ShortTime& below = short_steps[high == 0 ? 0 : high - 1];
  const int length = above.drafts - below.drafts;
  return between(below.shares.at(num_seqs), above.shares.at(num_seqs),
                 std::clamp(drafts - below.drafts, 0, length), length);
}

int64_t CostTable::step_ns(int num_seqs, int64_t granted, int64_t live) const {
  if (verify.empty() || num_seqs <= 0) {
    return target.at(static_cast<int>(std::min<int64_t>(num_seqs + live, CostLimits::kMaxSize)));
  }
  size_t high = 0;
  while (high + 1 < verify.size() && granted > int64_t{verify[high].drafts} * num_seqs) ++high;
  const VerifyTimes& above = verify[high];
  const VerifyTimes& below = verify[high == 0 ? 0 : high - 1];
  const int64_t most = int64_t{above.drafts} * num_seqs;
  // More room never costs less, though each curve has its own shape between the measured sizes.
  const auto between_drafts = [&](int64_t a, int64_t b) {
    return between_rows({num_seqs + int64_t{below.drafts} * num_seqs, a},
                        {num_seqs + most, std::max(a, b)}, num_seqs + std::min(granted, most));
  };
  const int64_t idle = between_drafts(verify_ns(below.idle, num_seqs, below.drafts),
                                      verify_ns(above.idle, num_seqs, above.drafts));
  const int64_t full = between_drafts(verify_ns(below.full, num_seqs, below.drafts),
                                      verify_ns(above.full, num_seqs, above.drafts));
  return between_rows({num_seqs, idle}, {num_seqs + granted, std::max(idle, full)},
                      num_seqs + std::min(live, granted));
}

int64_t CostTable::between_rows(RowTime low, RowTime high, int64_t rows) const {
  const auto target_ns = [&](int64_t size) {
    return target.at(static_cast<int>(std::min<int64_t>(size, CostLimits::kMaxSize)));
  };
  const int64_t from = target_ns(low.rows);
  const int64_t length = target_ns(high.rows) - from;
  if (length <= 0) return between(low.ns, high.ns, rows - low.rows, high.rows - low.rows);
  return between(low.ns, high.ns, target_ns(rows) - from, length);
}

int64_t CostTable::verify_ns(const TimeCurve& curve, int num_seqs, int drafts) const {
  const auto points = curve.points();
  const bool between_points =
      !points.empty() && num_seqs > points.front().size && num_seqs <= points.back().size;
  if (!between_points) return curve.at(num_seqs);
  const size_t before = point_before(points, num_seqs);
  const TimeCurve::Point &low = points[before], &high = points[before + 1];
  const int64_t each = drafts + 1;
  return between_rows({low.size * each, low.ns}, {high.size * each, high.ns}, num_seqs * each);
}

int64_t CostTable::context_ns(int num_seqs, int drafts, int64_t num_tokens, int64_t step_ns) const {
  const int64_t beyond = num_tokens - int64_t{num_seqs} * known_tokens;
  if (beyond < 0 && num_seqs > 0) {
    return -spared_ns(step_ns, short_share(num_seqs, drafts), num_tokens / num_seqs);
  }
  if (context.empty()) return 0;
  size_t high = 0;
  while (high + 1 < context.size() && drafts > context[high].drafts) ++high;
  const ContextTime& above = context[high];
  const ContextTime& below = context[high == 0 ? 0 : high - 1];
  const int length = above.drafts - below.drafts;
  const int64_t each = between(below.picoseconds, above.picoseconds,
                               std::clamp(drafts - below.drafts, 0, length), length);
  return std::clamp<int64_t>(beyond, 0, CostLimits::kMaxTokens) * each / 1000;
}

std::vector<int32_t> CostTable::row_ns(int num_seqs, int drafts, int max_rows) const {
  std::vector<int32_t> all(static_cast<size_t>(max_rows) + 1);
  const int64_t room = int64_t{num_seqs} * drafts;
  const RowTime idle{num_seqs, step_ns(num_seqs, room, 0)};
  const RowTime full{num_seqs + room, step_ns(num_seqs, room, room)};
  // Steps with room for just these drafts.
  const auto filled_ns = [&](int64_t live) { return step_ns(num_seqs, live, live); };
  const int64_t first = filled_ns(0);
  const int64_t length = filled_ns(room) - first;
  for (int rows = 1; rows <= max_rows; ++rows) {
    int64_t ns = 0;
    if (verify.empty()) {
      ns = target.at(rows);
    } else if (rows <= num_seqs || rows > full.rows || length <= 0) {
      ns = between_rows(idle, full, rows);
    } else {
      ns = between(idle.ns, full.ns, filled_ns(rows - num_seqs) - first, length);
    }
    all[static_cast<size_t>(rows)] =
        static_cast<int32_t>(std::clamp<int64_t>(ns, 0, std::numeric_limits<int32_t>::max()));
  }
  return all;
}

std::string CostTable::text() const {
  std::ostringstream text;
  append_curve(text, "target step", "rows", target);
  for (const VerifyTimes& times : verify) {
    const std::string room = std::to_string(times.drafts) + " drafts each";
    append_curve(text, room, "sequences", times.full);
    if (times.drafts > 0) append_curve(text, room + ", missing", "sequences", times.idle);
  }
  for (const ContextTime& each : context) {
    text << std::left << std::setw(28) << std::to_string(each.drafts) + " drafts each"
         << "1000 tokens of context " << each.picoseconds / 1000 << " us\n";
  }
  for (const ShortTime& each : short_steps) {
    append_shares(text, std::to_string(each.drafts) + " drafts each", "sequences", short_tokens,
                  each.shares);
  }
  for (const DrafterTimes& drafter : drafters) {
    const std::string pass = drafter.name + (drafter.one_pass ? " proposal" : " pass");
    append_curve(text, drafter.name + " catch-up", "rows", drafter.catch_up);
    append_curve(text, pass, "sequences", drafter.pass);
    append_shares(text, drafter.name + " catch-up", "rows", short_tokens, drafter.short_catch_up);
    append_shares(text, pass, "sequences", short_tokens, drafter.short_pass);
  }
  return text.str();
}

}  // namespace foretoken
