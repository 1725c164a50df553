#include "group/rank_place.h"

#include <fmt/format.h>

#include <numeric>

#include "base/check.h"

namespace foretoken::group {
namespace {

Status check_size(int size, const char* flag) {
  if (size >= 1) return {};
  return invalid_argument(fmt::format("{} is {}, it must be at least 1", flag, size));
}

}  // namespace

Status check_layout(const RankLayout& layout) {
  FT_RETURN_IF_ERROR(check_size(layout.tp, "--tensor-parallel-size"));
  FT_RETURN_IF_ERROR(check_size(layout.pp, "--pipeline-parallel-size"));
  FT_RETURN_IF_ERROR(check_size(layout.dp, "--data-parallel-size"));
  const long long ranks = 1LL * layout.tp * layout.pp * layout.dp;
  if (ranks <= kMaxRanks && layout.tp <= kMaxRanks && layout.pp <= kMaxRanks) return {};
  return invalid_argument(fmt::format(
      "tensor x pipeline x data parallel sizes are {} x {} x {}, more than {} ranks; lower one",
      layout.tp, layout.pp, layout.dp, kMaxRanks));
}

RankPlace place_of(const RankLayout& layout, int rank) {
  FT_CHECK(rank >= 0 && rank < layout.num_ranks());
  return {rank % layout.tp, rank / layout.tp % layout.pp, rank / layout.ranks_per_engine()};
}

int rank_of(const RankLayout& layout, const RankPlace& place) {
  return (place.dp * layout.pp + place.pp) * layout.tp + place.tp;
}

std::vector<int> engine_ranks(const RankLayout& layout, const RankPlace& place) {
  std::vector<int> ranks(static_cast<std::size_t>(layout.ranks_per_engine()));
  std::iota(ranks.begin(), ranks.end(), place.dp * layout.ranks_per_engine());
  return ranks;
}

std::vector<int> tp_ranks(const RankLayout& layout, const RankPlace& place) {
  std::vector<int> ranks;
  for (int tp = 0; tp < layout.tp; ++tp) ranks.push_back(rank_of(layout, {tp, place.pp, place.dp}));
  return ranks;
}

std::vector<int> pp_ranks(const RankLayout& layout, const RankPlace& place) {
  std::vector<int> ranks;
  for (int pp = 0; pp < layout.pp; ++pp) ranks.push_back(rank_of(layout, {place.tp, pp, place.dp}));
  return ranks;
}

std::vector<int> dp_ranks(const RankLayout& layout, const RankPlace& place) {
  std::vector<int> ranks;
  for (int dp = 0; dp < layout.dp; ++dp) ranks.push_back(rank_of(layout, {place.tp, place.pp, dp}));
  return ranks;
}

std::string describe(const RankLayout& layout, int rank) {
  if (rank == bare_front(layout)) return "the front end";
  const RankPlace place = place_of(layout, rank);
  std::string parts;
  const auto add = [&](const char* name, int size, int index) {
    if (size > 1) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, index);
  };
  add("tp", layout.tp, place.tp);
  add("pp", layout.pp, place.pp);
  add("dp", layout.dp, place.dp);
  return parts.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, parts);
}

}  // namespace foretoken::group
