#include "engine/step/shape/step_shape.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/check.h"

namespace foretoken {
namespace {

// 1, 2, 4, ... and, where a product's time follows its rows, 192, 384, 768 and 1536: its tiles are
// chosen by these sizes.
int size_after(int rows) {
  for (const int power : {128, 256, 512, 1024}) {
    if (rows == power) return rows * 3 / 2;
    if (rows == power * 3 / 2) return power * 2;
  }
  return rows * 2;
}

int bucket(int count, int most) {
  FT_CHECK_MSG(count <= most, std::to_string(count) + " of at most " + std::to_string(most));
  return std::min(static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(count, 1)))), most);
}

}  // namespace

RunLengths runs_of(const StepPlan& plan) {
  RunLengths runs = RunLengths::kShort;
  for (const Span& span : plan.spans) {
    if (span.max_rows() <= kShortRun) continue;
    const int behind =
        span.sequence == nullptr ? 0 : span.sequence->num_scheduled - span.num_tokens;
    if (behind >= kFarBehind || span.max_rows() > 2 * kFarBehind) return RunLengths::kFar;
    runs = RunLengths::kLong;
  }
  return runs;
}

size_t StepShapeHash::operator()(const StepShape& shape) const {
  uint64_t hash = static_cast<uint64_t>(shape.max_rows) << 32 |
                  static_cast<uint64_t>(shape.runs) << 28 |
                  static_cast<uint64_t>(shape.launch) << 24 |
                  static_cast<uint64_t>(shape.part) << 16 | shape.features;
  hash ^= static_cast<uint64_t>(shape.lane_rows) << 44;
  for (const DraftShape& draft : shape.drafts) {
    const auto word = static_cast<uint64_t>(draft.num_draft_tokens) << 48 |
                      static_cast<uint64_t>(draft.max_catch_up_rows) << 16 |
                      static_cast<uint64_t>(draft.num_branches) << 10 |
                      static_cast<uint64_t>(draft.max_spans);
    // Knuth's multiplicative step mixes the words.
    hash = (std::rotl(hash, 23) ^ word) * 0x9e3779b97f4a7c15u;
  }
  return static_cast<size_t>(hash ^ hash >> 32);
}

StepShapes::StepShapes(int max_rows, int max_spans, int max_catch_up_rows,
                       const std::vector<Drafter*>& drafters, const GraphConfig& graphs,
                       const LaneConfig& lanes)
    : mode_(graphs.mode),
      lanes_(lanes),
      max_rows_(max_rows),
      max_spans_(max_spans),
      max_catch_up_rows_(max_catch_up_rows),
      steps_between_lessons_(graphs.steps_between_lessons) {
  for (const Drafter* drafter : drafters) traits_.push_back(drafter->traits());
  for (const int size : graphs.sizes) {
    if (size <= max_rows) row_buckets_.push_back(size);
  }
  max_graph_rows_ = row_buckets_.empty() ? max_rows : row_buckets_.back();
  const int first = row_buckets_.empty() ? 1 : max_graph_rows_ + 1;
  for (int rows = 1; first <= max_rows; rows = size_after(rows)) {
    if (rows < first && rows < max_rows) continue;
    row_buckets_.push_back(std::min(rows, max_rows_));
    if (rows >= max_rows_) break;
  }
}

int StepShapes::row_bucket(int rows) const {
  FT_CHECK_MSG(rows <= max_rows_,
               std::to_string(rows) + " of at most " + std::to_string(max_rows_));
  return *std::lower_bound(row_buckets_.begin(), row_buckets_.end(), rows);
}

bool StepShapes::splits(int rows, bool decodes) const {
  return lanes_.enabled && launch_of(row_bucket(rows), decodes) != StepLaunch::kPieces &&
         rows >= (decodes ? lanes_.decode_rows : lanes_.prefill_rows);
}

int StepShapes::lane_rows(const StepPlan& plan) const {
  if (!splits(plan.num_rows, plan.num_new_ids == 0)) return 0;
  if (plan.spans.size() < 2 || (plan.features & kForwardFeatures) != 0) return 0;
  return row_bucket(plan.lane_cut().max_rows);
}

int StepShapes::usual_lane_rows(int rows, int rows_each, bool decodes) const {
  const int num_spans = rows / rows_each;
  if (num_spans < 2 || !splits(rows, decodes)) return 0;
  return row_bucket((num_spans + 1) / 2 * rows_each);
}

StepLaunch StepShapes::launch_of(int rows, bool decodes) const {
  return rows <= max_graph_rows_ ? foretoken::launch_of(mode_, decodes) : StepLaunch::kOps;
}

void StepShapes::call_learners(StepShape& shape) const {
  for (size_t i = 0; i < traits_.size(); ++i) {
    DraftShape& drafts = shape.drafts[i];
    if (traits_[i].learns && drafts == DraftShape{}) drafts.max_spans = 1;
  }
}

bool StepShapes::teaches(const StepPlan& plan) const {
  const bool is_plain =
      plan.num_new_ids == 0 && plan.num_rows == static_cast<int>(plan.spans.size()) &&
      std::all_of(plan.drafts.begin(), plan.drafts.end(), [](const DraftUse& use) {
        return use.num_draft_tokens == 0 && use.catch_up_rows == 0;
      });
  if (!is_plain || plan.step % static_cast<uint64_t>(steps_between_lessons_) == 0) return true;
  return std::any_of(plan.spans.begin(), plan.spans.end(), [](const Span& span) {
    return span.sequence != nullptr && span.sequence->len_bound() >= span.sequence->max_len;
  });
}

int StepShapes::max_decoding_rows() const {
  int rows_each = 1;
  for (const DrafterTraits& traits : traits_) {
    rows_each = std::max(rows_each, traits.max_draft_tokens + 1);
  }
  return std::min(max_spans_ * rows_each, max_rows_);
}

DraftShape StepShapes::of(const DraftUse& use, const DrafterTraits& traits) const {
  DraftShape shape;
  const bool drafts = use.num_draft_tokens > 0 && use.num_spans > 0;
  if (!traits.has_kv) {
    // In one pass, the time hardly depends on the drafts, but what they cost on the sequences.
    const int most = traits.one_pass ? traits.max_draft_tokens : use.num_draft_tokens;
    if (drafts) shape = {most, 0, bucket(use.num_spans, max_spans_)};
    return shape;
  }
  if (drafts) {
    shape.num_draft_tokens = use.num_draft_tokens;
    shape.max_spans = bucket(use.num_spans, max_spans_);
    shape.num_branches = traits.branches ? use.num_branches : 0;
  }
  if (use.catch_up_rows > 0) {
    shape.max_catch_up_rows = bucket(use.catch_up_rows, max_catch_up_rows_);
  }
  return shape;
}

// The entries of a step are those of the ids that it commits; a drafter that keeps what it wrote
// lacks two of them.
std::vector<StepShape> StepShapes::of_decoding(int drafter) const {
  const DrafterTraits& traits = traits_[static_cast<size_t>(drafter)];
  const int rows_each = traits.max_draft_tokens + 1;
  const int entries_each = traits.keeps_written ? std::min(rows_each, 2) : rows_each;
  std::vector<StepShape> shapes;
  for (int seqs = 1; seqs <= max_spans_ && seqs * rows_each <= max_rows_; seqs *= 2) {
    StepShape& shape = shapes.emplace_back();
    shape.max_rows = row_bucket(seqs * rows_each);
    shape.lane_rows = usual_lane_rows(seqs * rows_each, rows_each, true);
    shape.launch = launch_of(shape.max_rows, true);
    shape.runs = rows_each > kShortRun ? RunLengths::kLong : RunLengths::kShort;
    shape.drafts[static_cast<size_t>(drafter)] = of({.num_draft_tokens = traits.max_draft_tokens,
                                                     .catch_up_rows = seqs * entries_each,
                                                     .num_spans = seqs},
                                                    traits);
  }
  return shapes;
}

std::vector<StepShape> StepShapes::of_fewer_drafts(int drafter) const {
  const DrafterTraits& traits = traits_[static_cast<size_t>(drafter)];
  std::vector<StepShape> shapes;
  if (traits.has_kv || !traits.one_pass) return shapes;
  for (StepShape shape : of_decoding(drafter)) {
    const int most = shape.drafts[static_cast<size_t>(drafter)].max_spans;
    // Sequences that go by `most`, one of which has a draft; and all sequences, so many with all.
    const int first = row_bucket(std::min(most / 2 + 2, max_rows_));
    const int last = row_bucket(std::min(max_spans_ + most * traits.max_draft_tokens, max_rows_));
    const int rows_with_all = shape.max_rows;
    for (const int rows : row_buckets_) {
      if (rows < first || rows > last || rows == rows_with_all) continue;
      shape.max_rows = rows;
      shape.lane_rows = usual_lane_rows(rows, 1, true);
      shape.launch = launch_of(rows, true);
      shapes.push_back(shape);
    }
  }
  return shapes;
}

std::vector<StepShape> StepShapes::without_lessons() const {
  std::vector<StepShape> shapes;
  const bool skips = steps_between_lessons_ > 1 &&
                     std::any_of(traits_.begin(), traits_.end(),
                                 [](const DrafterTraits& traits) { return traits.learns; });
  for (const int rows : row_buckets_) {
    if (!skips || rows > row_bucket(std::min(max_spans_, max_rows_))) break;
    shapes.push_back({.max_rows = rows,
                      .lane_rows = usual_lane_rows(rows, 1, true),
                      .launch = launch_of(rows, true)});
  }
  return shapes;
}

std::vector<StepShape> StepShapes::usual() const {
  std::vector<StepShape> shapes;
  const int max_decoding = row_bucket(max_decoding_rows());
  for (const int rows : row_buckets_) {
    const StepLaunch mixed = launch_of(rows, false), decoding = launch_of(rows, true);
    const RunLengths runs = rows > kShortRun ? RunLengths::kLong : RunLengths::kShort;
    shapes.push_back({.max_rows = rows,
                      .lane_rows = usual_lane_rows(rows, 1, false),
                      .launch = mixed,
                      .runs = runs});
    const int decoding_lane_rows = usual_lane_rows(rows, 1, true);
    if ((decoding != mixed || decoding_lane_rows != shapes.back().lane_rows ||
         runs != RunLengths::kShort) &&
        rows <= max_decoding) {
      shapes.push_back({.max_rows = rows, .lane_rows = decoding_lane_rows, .launch = decoding});
    }
  }
  for (int i = 0; i < static_cast<int>(traits_.size()); ++i) {
    for (const StepShape& shape : of_decoding(i)) shapes.push_back(shape);
  }
  for (int i = 0; i < static_cast<int>(traits_.size()); ++i) {
    for (const StepShape& shape : of_fewer_drafts(i)) shapes.push_back(shape);
  }
  for (StepShape& shape : shapes) call_learners(shape);
  for (const StepShape& shape : without_lessons()) shapes.push_back(shape);
  std::erase_if(shapes, [](const StepShape& shape) { return shape.launch == StepLaunch::kOps; });
  return shapes;
}

StepShape StepShapes::of(const StepPlan& plan) const {
  StepShape shape;
  shape.max_rows = row_bucket(plan.num_rows);
  shape.lane_rows = lane_rows(plan);
  shape.features = plan.features;
  // The ids of a decoding sequence are on the device.
  shape.launch = launch_of(shape.max_rows, plan.num_new_ids == 0);
  shape.runs = runs_of(plan);
  for (size_t i = 0; i < traits_.size(); ++i) shape.drafts[i] = of(plan.drafts[i], traits_[i]);
  if (teaches(plan)) call_learners(shape);
  return shape;
}

}  // namespace foretoken
