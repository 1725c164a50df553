#include "convert/piece_scores.h"

#include <set>
#include <unordered_map>
#include <utility>

#include "gguf/vocabulary/piece_merges.h"

namespace foretoken {

std::optional<std::vector<float>> piece_scores(const std::vector<std::string>& pieces,
                                               std::span<const Merge> merges) {
  std::unordered_map<std::string, size_t> ranks;
  std::set<std::pair<std::string, std::string>> given;
  std::string before;
  for (const Merge& merge : merges) {
    const std::string piece = merge.left + merge.right;
    const bool is_new = ranks.emplace(piece, ranks.size()).second;
    if (!is_new && piece != before) return std::nullopt;
    before = piece;
    given.emplace(merge.left, merge.right);
  }
  std::vector<float> scores;
  std::vector<double> exact;
  for (const std::string& piece : pieces) {
    const auto found = ranks.find(piece);
    const size_t rank = found != ranks.end() ? found->second : ranks.size();
    scores.push_back(-static_cast<float>(rank));
    exact.push_back(-static_cast<double>(rank));
  }
  const nlohmann::json made = piece_merges(pieces, exact);
  if (made.size() != given.size()) return std::nullopt;
  for (const auto& merge : made) {
    if (!given.contains({merge[0], merge[1]})) return std::nullopt;
  }
  return scores;
}

}  // namespace foretoken
