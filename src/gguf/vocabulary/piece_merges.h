#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace foretoken {

// The merges of a SentencePiece BPE vocabulary, best first: every way to make a piece of two
// others, in the order of the pieces' scores, then the longest left part first, then by the parts'
// ids. `scores`: as many as pieces.
nlohmann::json piece_merges(const std::vector<std::string>& pieces,
                            const std::vector<double>& scores);

}  // namespace foretoken
