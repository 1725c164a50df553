#include "engine/draft_vocab.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

namespace foretoken {
namespace {

bool separates(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == ',' || c == '[' || c == ']';
}

Status check_id(const std::string& file, int64_t id, std::vector<bool>& seen) {
  if (id < 0 || id >= static_cast<int64_t>(seen.size())) {
    return invalid_argument(file + ": " + std::to_string(id) +
                            " is no id of the target's vocabulary of " +
                            std::to_string(seen.size()));
  }
  if (seen[static_cast<size_t>(id)]) {
    return invalid_argument(file + ": the id " + std::to_string(id) + " stands there twice");
  }
  seen[static_cast<size_t>(id)] = true;
  return {};
}

Result<std::vector<int32_t>> parse(const std::string& file, const std::string& text,
                                   int vocab_size) {
  std::vector<int32_t> ids;
  std::vector<bool> seen(static_cast<size_t>(vocab_size));
  const char* end = text.data() + text.size();
  for (const char* at = text.data();;) {
    at = std::find_if_not(at, end, separates);
    if (at == end) break;
    int64_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next != end && !separates(*next))) {
      const std::string word(at, std::find_if(at, end, separates));
      return invalid_argument(file + ": '" + word.substr(0, 40) +
                              "' is no token id; give a JSON array of ids, best first");
    }
    FT_RETURN_IF_ERROR(check_id(file, id, seen));
    ids.push_back(static_cast<int32_t>(id));
    at = next;
  }
  if (ids.empty()) return invalid_argument(file + " names no token id; give the likeliest ones");
  return ids;
}

}  // namespace

Result<std::vector<int32_t>> read_draft_vocab(const SpeculativeConfig& config, int vocab_size) {
  const auto wanted = static_cast<size_t>(config.draft_vocab_size);
  std::vector<int32_t> ids;
  if (config.draft_vocab_file.empty()) {
    ids.resize(std::min(wanted, static_cast<size_t>(vocab_size)));
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }
  std::ifstream in(config.draft_vocab_file, std::ios::binary);
  if (!in) {
    return not_found("speculative config: draft_vocab_file '" + config.draft_vocab_file +
                     "' cannot be read; give a file of token ids, best first");
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  FT_ASSIGN_OR_RETURN(ids, parse(config.draft_vocab_file, text, vocab_size));
  if (wanted > ids.size()) {
    return invalid_argument("speculative config: draft_vocab_size is " + std::to_string(wanted) +
                            ", but " + config.draft_vocab_file + " has " +
                            std::to_string(ids.size()) + " ids; lower it");
  }
  if (wanted > 0) ids.resize(wanted);
  return ids;
}

}  // namespace foretoken
