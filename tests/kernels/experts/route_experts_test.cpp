#include "kernels/experts/route_experts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "kernels/op_cost.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// What one row must choose, in doubles.
struct Choice {
  std::vector<int32_t> ids;
  std::vector<double> weights;
};

// The places of the `count` largest values, the lower place first among equals.
std::vector<int> best_places(const std::vector<double>& values, int count) {
  std::vector<int> places(values.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i);
  std::stable_sort(places.begin(), places.end(),
                   [&](int a, int b) { return values[size_t(a)] > values[size_t(b)]; });
  places.resize(size_t(count));
  return places;
}

std::vector<double> softmax_of(const std::vector<double>& logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> all;
  double sum = 0;
  for (const double logit : logits) {
    all.push_back(std::exp(logit - most));
    sum += all.back();
  }
  for (double& value : all) value /= sum;
  return all;
}

// Liu et al. 2023, as Phi-3.5 runs it: each choice among those near the largest that is left.
Choice mixed(const std::vector<double>& logits, int top_k, double jitter) {
  Choice choice;
  std::vector<double> left = logits;
  for (int slot = 0; slot < top_k; ++slot) {
    const int best = best_places(left, 1)[0];
    const double most = left[size_t(best)];
    std::vector<double> near = left;
    for (size_t e = 0; e < logits.size(); ++e) {
      if ((most - logits[e]) / std::max(std::abs(logits[e]), most) > 2 * jitter) near[e] = kNone;
    }
    choice.ids.push_back(best);
    choice.weights.push_back(softmax_of(near)[size_t(best)]);
    left[size_t(best)] = kNone;
  }
  return choice;
}

Choice expected(const RouteExpertsArgs& a, const std::vector<double>& logits,
                const std::vector<float>& correction) {
  if (a.score == ExpertScore::kSparseMixer) return mixed(logits, a.lists.top_k, a.jitter);
  std::vector<double> scores = logits;
  if (a.score == ExpertScore::kSoftmax) scores = softmax_of(logits);
  if (a.score == ExpertScore::kSigmoid || a.score == ExpertScore::kSigmoidOfChosen) {
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
  }
  if (a.score == ExpertScore::kSqrtSoftplus) {
    for (double& score : scores) score = std::sqrt(std::log1p(std::exp(score)));
  }
  std::vector<double> ranks = a.score == ExpertScore::kSigmoidOfChosen ? logits : scores;
  for (size_t e = 0; e < correction.size(); ++e) ranks[e] += correction[e];
  const int size = a.num_experts / a.num_groups;
  std::vector<double> groups;
  for (int g = 0; g < a.num_groups; ++g) {
    std::vector<double> own(ranks.begin() + g * size, ranks.begin() + (g + 1) * size);
    std::sort(own.rbegin(), own.rend());
    groups.push_back(own[0] + (a.groups == ExpertGroups::kBestTwo && size > 1 ? own[1] : 0));
  }
  const std::vector<int> open = best_places(groups, a.top_groups);
  for (int e = 0; e < a.num_experts; ++e) {
    if (std::find(open.begin(), open.end(), e / size) == open.end()) ranks[size_t(e)] = kNone;
  }
  Choice choice;
  for (const int e : best_places(ranks, a.lists.top_k)) {
    choice.ids.push_back(e);
    choice.weights.push_back(scores[size_t(e)]);
  }
  if (a.score == ExpertScore::kSoftmaxOfChosen) choice.weights = softmax_of(choice.weights);
  double sum = 0;
  for (const double weight : choice.weights) sum += weight;
  for (double& weight : choice.weights)
    weight = (a.normalised != 0 ? weight / sum : weight) * a.scale;
  return choice;
}

class RouteExpertsTest : public RowOpTest {
 protected:
  struct Routed {
    std::vector<int32_t> ids, begins, entries;
    std::vector<float> weights;
  };

  // Rows of logits, `live` of them.
  Routed route(RouteExpertsArgs args, const std::vector<float>& logits, int live,
               const std::vector<float>& correction = {}) {
    const size_t choices = size_t(args.max_rows) * size_t(args.lists.top_k);
    args.counts = counts(live);
    args.logits = to_device(logits);
    args.correction = correction.empty() ? nullptr : to_device(correction);
    args.ids = to_device(std::vector<int32_t>(choices, -7));
    args.weights = to_device(std::vector<float>(choices, -7));
    args.lists.begins = to_device(std::vector<int32_t>(size_t(args.lists.count) + 1, -7));
    args.lists.entries = to_device(std::vector<int32_t>(choices, -7));
    route_experts(queue(), args);
    Routed out;
    out.ids = read(args.ids, choices);
    out.weights = read(args.weights, choices);
    out.begins = read(args.lists.begins, size_t(args.lists.count) + 1);
    out.entries = read(args.lists.entries, choices);
    return out;
  }

  static RouteExpertsArgs args_of(int experts, int top_k, int rows, ExpertScore score) {
    RouteExpertsArgs args{};
    args.num_experts = experts;
    args.lists.count = experts;
    args.lists.top_k = top_k;
    args.max_rows = rows;
    args.score = score;
    args.num_groups = args.top_groups = 1;
    args.scale = 1;
    return args;
  }

  // Against the doubles, for random logits whose ranks lie well apart.
  void expect_as_doubles(const RouteExpertsArgs& args, const std::vector<float>& correction = {}) {
    const int experts = args.num_experts, rows = args.max_rows, top_k = args.lists.top_k;
    const auto logits = random_floats(size_t(rows) * size_t(experts), 5, 2);
    const Routed routed = route(args, logits, rows - 1, correction);
    for (int r = 0; r < rows - 1; ++r) {
      const Choice want = expected(
          args, {logits.begin() + r * experts, logits.begin() + (r + 1) * experts}, correction);
      for (int i = 0; i < top_k; ++i) {
        const size_t at = size_t(r * top_k + i);
        ASSERT_EQ(routed.ids[at], want.ids[size_t(i)]) << "row " << r << " slot " << i;
        ASSERT_NEAR(routed.weights[at], want.weights[size_t(i)], 2e-6 * (1 + args.scale));
      }
    }
    for (size_t i = size_t((rows - 1) * top_k); i < routed.ids.size(); ++i) {
      ASSERT_EQ(routed.ids[i], -7);
    }
    expect_lists(args, routed, rows - 1);
  }

  // Each live choice of one of the experts stands in its list, ascending.
  static void expect_lists(const RouteExpertsArgs& args, const Routed& routed, int live) {
    ASSERT_EQ(routed.begins[0], 0);
    int32_t at = 0;
    for (int e = 0; e < args.lists.count; ++e) {
      ASSERT_EQ(routed.begins[size_t(e)], at);
      for (int i = 0; i < live * args.lists.top_k; ++i) {
        if (routed.ids[size_t(i)] != args.first_expert + e) continue;
        ASSERT_EQ(routed.entries[size_t(at++)], i) << "expert " << e;
      }
    }
    ASSERT_EQ(routed.begins[size_t(args.lists.count)], at);
  }
};

TEST_F(RouteExpertsTest, SoftmaxAndItsKin) {
  expect_as_doubles(args_of(8, 2, 40, ExpertScore::kSoftmax));
  expect_as_doubles(args_of(128, 8, 33, ExpertScore::kSoftmaxOfChosen));
  RouteExpertsArgs args = args_of(60, 4, 40, ExpertScore::kSoftmax);
  args.normalised = 1;
  args.scale = 2.5f;
  expect_as_doubles(args);
}

TEST_F(RouteExpertsTest, SigmoidsWithACorrection) {
  RouteExpertsArgs args = args_of(256, 8, 40, ExpertScore::kSigmoid);
  args.normalised = 1;
  args.scale = 2.5f;
  expect_as_doubles(args, random_floats(256, 9, 0.3f));
  args.normalised = 0;
  expect_as_doubles(args);
  expect_as_doubles(args_of(16, 1, 40, ExpertScore::kSigmoid));
}

// DeepSeek V4.
TEST_F(RouteExpertsTest, RootsOfSoftplusWithACorrection) {
  RouteExpertsArgs args = args_of(384, 6, 40, ExpertScore::kSqrtSoftplus);
  args.normalised = 1;
  args.scale = 2.5f;
  expect_as_doubles(args, random_floats(384, 9, 0.3f));
  expect_as_doubles(args);
  // Small ones keep their digits.
  RouteExpertsArgs all = args_of(4, 4, 1, ExpertScore::kSqrtSoftplus);
  const Routed small = route(all, {-30.0f, -12.0f, 0.0f, 40.0f}, 1);
  const double want[] = {std::sqrt(40.0), std::sqrt(std::log(2.0)),
                         std::sqrt(std::log1p(std::exp(-12.0))), std::exp(-15.0)};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(small.weights[i] / want[i], 1, 2e-6) << i;
}

// Tokens say the experts; logits only weigh them.
TEST_F(RouteExpertsTest, ExpertsOfATable) {
  constexpr int kExperts = 16, kTopK = 3, kRows = 9, kVocabulary = 20;
  RouteExpertsArgs args = args_of(kExperts, kTopK, kRows, ExpertScore::kSqrtSoftplus);
  args.normalised = 1;
  args.scale = 1.5f;
  std::vector<int32_t> table, tokens;
  for (int i = 0; i < kVocabulary * kTopK; ++i) table.push_back((i * 7 + i / kTopK) % kExperts);
  for (int r = 0; r < kRows; ++r) tokens.push_back((r * 11 + 4) % kVocabulary);
  args.table = to_device(table);
  args.token_ids = to_device(tokens);
  const auto logits = random_floats(size_t{kRows} * kExperts, 5, 2);
  const Routed routed = route(args, logits, kRows);
  for (int r = 0; r < kRows; ++r) {
    double sum = 0;
    std::vector<double> scores;
    for (int i = 0; i < kTopK; ++i) {
      const int32_t id = table[size_t(tokens[size_t(r)] * kTopK + i)];
      ASSERT_EQ(routed.ids[size_t(r * kTopK + i)], id);
      const double logit = double(logits[size_t(r * kExperts + id)]);
      scores.push_back(std::sqrt(std::log1p(std::exp(logit))));
      sum += scores.back();
    }
    for (int i = 0; i < kTopK; ++i) {
      ASSERT_NEAR(routed.weights[size_t(r * kTopK + i)], scores[size_t(i)] / sum * 1.5, 5e-6);
    }
  }
  expect_lists(args, routed, kRows);
}

// DeepSeek V3 and V2, and softmaxes that are corrected (ERNIE).
TEST_F(RouteExpertsTest, Groups) {
  RouteExpertsArgs args = args_of(256, 8, 40, ExpertScore::kSigmoid);
  args.num_groups = 8;
  args.top_groups = 4;
  args.groups = ExpertGroups::kBestTwo;
  args.normalised = 1;
  expect_as_doubles(args, random_floats(256, 9, 0.3f));
  expect_as_doubles(args);
  args.score = ExpertScore::kSoftmax;
  args.groups = ExpertGroups::kBest;
  args.top_groups = 3;
  expect_as_doubles(args);
  args.num_groups = 256;
  args.top_groups = 9;
  expect_as_doubles(args);
  expect_as_doubles(args_of(64, 6, 40, ExpertScore::kSoftmax), random_floats(64, 9, 0.1f));
}

TEST_F(RouteExpertsTest, GroupsOfManySizes) {
  struct Groups {
    int experts, groups, top_groups;
  };
  for (const Groups& c :
       {Groups{160, 8, 3}, Groups{256, 4, 2}, Groups{384, 12, 5}, Groups{512, 16, 4},
        Groups{64, 16, 7}, Groups{96, 3, 2}, Groups{60, 5, 3}, Groups{1000, 40, 9}}) {
    for (const ExpertGroups kind : {ExpertGroups::kBest, ExpertGroups::kBestTwo}) {
      RouteExpertsArgs args = args_of(c.experts, 6, 20, ExpertScore::kSigmoid);
      args.num_groups = c.groups;
      args.top_groups = c.top_groups;
      args.groups = kind;
      SCOPED_TRACE(std::to_string(c.experts) + " in " + std::to_string(c.groups));
      expect_as_doubles(args, random_floats(size_t(c.experts), 9, 0.3f));
    }
  }
}

// Lists of few choices, as many as one block lists at once, and more.
TEST_F(RouteExpertsTest, AsManyChoicesAsMayBe) {
  for (const int rows : {1, 2, 3, 8, 9}) {
    expect_as_doubles(args_of(160, kMaxTopExperts, rows, ExpertScore::kSigmoid));
  }
}

TEST_F(RouteExpertsTest, SparseMixer) {
  RouteExpertsArgs args = args_of(16, 2, 60, ExpertScore::kSparseMixer);
  args.jitter = 0.01f;
  expect_as_doubles(args);
  args.jitter = 0.4f;
  expect_as_doubles(args);
}

// Equal experts, and equal groups: the lowest id.
TEST_F(RouteExpertsTest, TiesGoToTheLowestId) {
  RouteExpertsArgs args = args_of(64, 6, 3, ExpertScore::kSigmoid);
  const std::vector<float> zeros(3 * 64, 0.0f);
  for (const ExpertScore score :
       {ExpertScore::kSigmoid, ExpertScore::kSigmoidOfChosen, ExpertScore::kSoftmax,
        ExpertScore::kSoftmaxOfChosen, ExpertScore::kSqrtSoftplus, ExpertScore::kSparseMixer}) {
    args.score = score;
    const Routed routed = route(args, zeros, 3);
    for (int i = 0; i < 18; ++i) EXPECT_EQ(routed.ids[size_t(i)], i % 6);
  }
  args.score = ExpertScore::kSigmoid;
  args.num_groups = 16;
  args.top_groups = 2;
  args.groups = ExpertGroups::kBestTwo;
  std::vector<float> correction(64, 0.0f);
  for (const int e : {5, 20, 37, 63}) correction[size_t(e)] = 1;
  const Routed routed = route(args, zeros, 1, correction);
  EXPECT_EQ(std::vector(routed.ids.begin(), routed.ids.begin() + 6),
            (std::vector<int32_t>{5, 20, 4, 6, 7, 21}));
  args.groups = ExpertGroups::kBest;
  const Routed first = route(args, zeros, 1);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(first.ids[size_t(i)], i);
  args = args_of(256, 8, 1, ExpertScore::kSigmoid);
  args.num_groups = 8;
  args.top_groups = 4;
  args.groups = ExpertGroups::kBestTwo;
  correction.assign(256, 0.0f);
  for (const int e : {37, 70, 200}) correction[size_t(e)] = 1;
  EXPECT_EQ(route(args, std::vector<float>(256, 0.0f), 1, correction).ids,
            (std::vector<int32_t>{37, 70, 200, 0, 1, 2, 3, 4}));
  // Logits that differ although their probabilities do not.
  std::vector<float> near(64, -100.0f);
  near[40] = -99.0f;
  near[2] = 0.0f;
  args = args_of(64, 2, 1, ExpertScore::kSoftmax);
  EXPECT_EQ(route(args, near, 1).ids, (std::vector<int32_t>{2, 40}));
}

// A row's choice depends on its own logits alone, whatever else is routed.
TEST_F(RouteExpertsTest, RowsAreBitEqualForEveryCount) {
  constexpr int kExperts = 96, kTop = 5, kRows = 512;
  RouteExpertsArgs args = args_of(kExperts, kTop, kRows, ExpertScore::kSoftmax);
  args.normalised = 1;
  const auto logits = random_floats(size_t(kRows) * kExperts, 7);
  const Routed all = route(args, logits, kRows);
  expect_lists(args, all, kRows);
  args.max_rows = 1;
  for (const int r : {0, 1, 77, 511}) {
    const Routed one =
        route(args, {logits.begin() + r * kExperts, logits.begin() + (r + 1) * kExperts}, 1);
    for (int i = 0; i < kTop; ++i) {
      EXPECT_EQ(one.ids[size_t(i)], all.ids[size_t(r * kTop + i)]);
      EXPECT_EQ(one.weights[size_t(i)], all.weights[size_t(r * kTop + i)]);
    }
  }
}

// Few rows may be routed and listed otherwise than many.
TEST_F(RouteExpertsTest, EveryNumberOfRows) {
  constexpr int kMax = 300;
  for (const auto& [experts, top_k] : {std::pair(64, 6), std::pair(160, 8)}) {
    RouteExpertsArgs args = args_of(experts, top_k, kMax, ExpertScore::kSigmoid);
    args.normalised = 1;
    const auto logits = random_floats(size_t(kMax) * size_t(experts), 7);
    const Routed all = route(args, logits, kMax);
    expect_lists(args, all, kMax);
    for (const int rows : {1, 7, 8, 9, 64, 65, 256, 257}) {
      args.max_rows = rows;
      const Routed few =
          route(args, {logits.begin(), logits.begin() + ptrdiff_t(rows) * experts}, rows);
      ASSERT_TRUE(std::equal(few.ids.begin(), few.ids.end(), all.ids.begin())) << rows;
      ASSERT_TRUE(std::equal(few.weights.begin(), few.weights.end(), all.weights.begin())) << rows;
      expect_lists(args, few, rows);
    }
  }
}

// Lists hold a rank's own experts alone; ids and weights are those of all.
TEST_F(RouteExpertsTest, ListsOfSomeExperts) {
  RouteExpertsArgs args = args_of(32, 4, 20, ExpertScore::kSoftmax);
  args.first_expert = 8;
  args.lists.count = 16;
  expect_as_doubles(args);
}

// Rows that came from elsewhere with what they chose.
TEST_F(RouteExpertsTest, RoutedRowsAreOnlyListed) {
  RouteExpertsArgs args = args_of(32, 4, 20, ExpertScore::kSoftmax);
  args.first_expert = 8;
  args.lists.count = 16;
  const Routed routed = route(args, random_floats(20 * 32, 5, 2), 19);
  args.counts = counts(19);
  args.ids = to_device(routed.ids);
  args.weights = to_device(routed.weights);
  args.lists.begins = to_device(std::vector<int32_t>(17, -7));
  args.lists.entries = to_device(std::vector<int32_t>(80, -7));
  route_experts(queue(), args);
  EXPECT_EQ(read(args.lists.begins, 17), routed.begins);
  EXPECT_EQ(read(args.lists.entries, 80), routed.entries);
  EXPECT_EQ(read(args.ids, 80), routed.ids);
  EXPECT_EQ(read(args.weights, 80), routed.weights);
}

TEST_F(RouteExpertsTest, NoRowsAndNoNumbers) {
  RouteExpertsArgs args = args_of(32, 4, 2, ExpertScore::kSoftmax);
  const Routed none = route(args, std::vector<float>(64, 1), 0);
  EXPECT_EQ(none.begins, std::vector<int32_t>(33, 0));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int experts : {32, 256}) {  // groups of 4 to 64
    for (const int groups : {4, 8}) {
      args = args_of(experts, 4, 2, ExpertScore::kSoftmax);
      args.num_groups = groups;
      args.top_groups = 2;
      const Routed invalid = route(args, std::vector<float>(size_t(2 * experts), nan), 2);
      for (int r = 0; r < 2; ++r) {
        const std::set<int32_t> ids(invalid.ids.begin() + 4 * r, invalid.ids.begin() + 4 * r + 4);
        EXPECT_EQ(ids.size(), 4u);
        EXPECT_GE(*ids.begin(), 0);
        EXPECT_LT(*ids.rbegin(), experts);
      }
    }
  }
}

TEST(RouteExpertsCost, CountsLogitsAndChoices) {
  RouteExpertsArgs args{};
  const float logit = 0;
  args.logits = &logit;
  args.num_experts = 64;
  args.lists = {nullptr, nullptr, 64, 6};
  args.max_rows = 8;
  const OpCost cost = op_cost(Op::kRouteExperts, &args, {.counts = {5, 0, 1, 0}});
  EXPECT_EQ(cost.weight_bytes, 0);
  EXPECT_EQ(cost.row_bytes, 5 * 64 * 4 + 5 * 6 * 12 + 65 * 4);
  EXPECT_EQ(op_shape(Op::kRouteExperts, &args), "6 of 64");
  args.logits = nullptr;  // rows that were routed before
  EXPECT_EQ(op_cost(Op::kRouteExperts, &args, {.counts = {5, 0, 1, 0}}).row_bytes,
            5 * 6 * 12 + 65 * 4);
}

}  // namespace
}  // namespace foretoken
