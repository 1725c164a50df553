#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace foretoken {

// Two pieces of a vocabulary that become one.
struct Merge {
  std::string left;
  std::string right;
};

// Scores from which gguf/piece_merges.h makes these merges (best first) again, one a piece: the
// earlier a piece is made, the higher. None where the merges are not all ways to make pieces, as
// those of a SentencePiece vocabulary are. An empty piece is one that merges do not make.
std::optional<std::vector<float>> piece_scores(const std::vector<std::string>& pieces,
                                               std::span<const Merge> merges);

}  // namespace foretoken
