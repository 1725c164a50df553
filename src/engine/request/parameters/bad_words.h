#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace foretoken {

// The id sequences of `words` as SlotLists::bad_words holds them: length, ids, length, ids, ... A
// word is encoded bare and behind a space, as texts have it: " upon" may be one token where "upon"
// is two. (vLLM forbids the second only where it is as long as the first.) InvalidArgument names a
// word without text, one with an id outside the vocabulary of the model, or says that there are too
// many.
Result<std::vector<int32_t>> bad_word_ids(const std::vector<std::string>& words,
                                          const Tokenizer& tokenizer, int vocab_size);

}  // namespace foretoken
