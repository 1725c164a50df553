#include "gguf/vocabulary/piece_merges.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace foretoken {
namespace {

struct Merge {
  double score;
  size_t left;
  size_t right;
};

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace

nlohmann::json piece_merges(const std::vector<std::string>& pieces,
                            const std::vector<double>& scores) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < pieces.size(); ++i) ids.emplace(pieces[i], i);
  std::vector<Merge> merges;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view piece = pieces[i];
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if (!begins_character(piece[cut])) continue;
      const auto left = ids.find(piece.substr(0, cut));
      const auto right = ids.find(piece.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({scores[i], left->second, right->second});
    }
  }
  // SentencePiece takes the leftmost of pairs with equal scores, which lets the piece there grow: a
  // longer left part goes before.
  std::stable_sort(merges.begin(), merges.end(), [&](const Merge& a, const Merge& b) {
    return std::tuple(-a.score, pieces[b.left].size(), a.left, a.right) <
           std::tuple(-b.score, pieces[a.left].size(), b.left, b.right);
  });
  auto list = nlohmann::json::array();
  for (const Merge& merge : merges) {
    list.push_back(nlohmann::json::array({pieces[merge.left], pieces[merge.right]}));
  }
  return list;
}

}  // namespace foretoken
