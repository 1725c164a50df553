#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace foretoken {

// How a draft model with another vocabulary reads the target's tokens and is read back
// (token-level intersection; Timor et al. 2025).
struct TokenMap {
  // Both empty: the same id is the same token in both vocabularies.
  std::vector<int32_t> to_draft;   // [target vocab] the draft id of the equal token, or one that
                                   // ends the same text
  std::vector<int32_t> to_target;  // [draft vocab] the target id of the equal token, each at most
                                   // once; -1: none
  // Tokens in common among those of the smaller vocabulary.
  double share = 1;
};

// One side: its tokenizer, and the width of its model's logits.
struct Vocabulary {
  const Tokenizer& tokenizer;
  int32_t size;
};

// Compares tokens by the bytes they stand for, so that "Ġthe" and "▁the" are equal, and "<0x0A>"
// and "Ċ"; special tokens only by their text and role (BOS, EOS). InvalidArgument when ids differ
// and not `heterogeneous`, or when less than half of the smaller vocabulary is in common.
Result<TokenMap> map_tokens(const Vocabulary& target, const Vocabulary& draft, bool heterogeneous);

}  // namespace foretoken
