#include "engine/request/parameters/bad_words.h"

#include <algorithm>
#include <string_view>

#include "kernels/step_types.h"

namespace foretoken {
namespace {

std::string_view without_leading_space(std::string_view word) {
  const size_t first = word.find_first_not_of(" \t\n\r\f\v");
  return first == std::string_view::npos ? std::string_view() : word.substr(first);
}

void append_sequence(const std::vector<int32_t>& ids, std::vector<int32_t>& list) {
  list.push_back(static_cast<int32_t>(ids.size()));
  list.insert(list.end(), ids.begin(), ids.end());
}

bool ends_with_ids(const std::vector<int32_t>& all, const std::vector<int32_t>& end) {
  return all.size() >= end.size() && std::equal(end.rbegin(), end.rend(), all.rbegin());
}

Status check_word_ids(const std::vector<int32_t>& ids, const std::string& word, int vocab_size) {
  if (ids.empty()) {
    return invalid_argument("bad_words: '" + word + "' has no tokens; leave it out");
  }
  for (const int32_t id : ids) {
    if (id >= vocab_size) {
      return invalid_argument("bad_words: '" + word + "' needs token id " + std::to_string(id) +
                              ", which is not in the model's vocabulary of " +
                              std::to_string(vocab_size) + "; leave it out");
    }
  }
  return {};
}

}  // namespace

Result<std::vector<int32_t>> bad_word_ids(const std::vector<std::string>& words,
                                          const Tokenizer& tokenizer, int vocab_size) {
  std::vector<int32_t> list;
  for (const std::string& word : words) {
    const std::string bare(without_leading_space(word));
    if (bare.empty()) return invalid_argument("bad_words holds a word without text; leave it out");
    FT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.encode(bare, false));
    FT_RETURN_IF_ERROR(check_word_ids(ids, word, vocab_size));
    append_sequence(ids, list);
    FT_ASSIGN_OR_RETURN(const std::vector<int32_t> spaced, tokenizer.encode(" " + bare, false));
    // What ends with the bare word is forbidden with it.
    if (!ends_with_ids(spaced, ids)) {
      FT_RETURN_IF_ERROR(check_word_ids(spaced, word, vocab_size));
      append_sequence(spaced, list);
    }
    if (list.size() > kMaxBadWordInts) {
      return invalid_argument("bad_words have more than " + std::to_string(kMaxBadWordInts) +
                              " tokens and words together; name fewer or shorter ones");
    }
  }
  return list;
}

}  // namespace foretoken
