#include "draft/parts/draft_vocab.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string>
#include <unordered_set>

namespace foretoken {
namespace {

// The numbers of the file as they stand there; they may be out of range.
Result<std::vector<int64_t>> read_numbers(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file || text.bad()) {
    return not_found("speculative config: cannot read draft_vocab_file " + path +
                     "; name a file with token ids, best first");
  }
  const Status broken = invalid_argument("speculative config: draft_vocab_file " + path +
                                         " must hold token ids, best first: a JSON array of "
                                         "integers, or integers between white space");
  std::vector<int64_t> numbers;
  if ((text >> std::ws).peek() == '[') {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_array()) return broken;
    for (const auto& item : json) {
      if (!item.is_number_integer()) return broken;
      numbers.push_back(item.get<int64_t>());
    }
  } else {
    for (int64_t number = 0; text >> number;) numbers.push_back(number);
    if (!text.eof()) return broken;
  }
  if (numbers.empty()) return broken;
  return numbers;
}

// Best first, without repetitions.
Result<std::vector<int32_t>> ranked_ids(const std::string& path, int32_t vocab_size) {
  std::vector<int32_t> ids;
  if (path.empty()) {
    ids.resize(static_cast<size_t>(vocab_size));
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, read_numbers(path));
  std::unordered_set<int64_t> seen;
  for (const int64_t number : numbers) {
    if (number < 0 || number >= vocab_size) {
      return invalid_argument("speculative config: draft_vocab_file " + path + " names id " +
                              std::to_string(number) + ", but the target's ids are 0 to " +
                              std::to_string(vocab_size - 1) + "; make it for this model");
    }
    if (seen.insert(number).second) ids.push_back(static_cast<int32_t>(number));
  }
  return ids;
}

// Puts the wanted ids in place of the last others.
void keep_ids(std::vector<int32_t>* ids, std::span<const int32_t> wanted) {
  const auto is_wanted = [&](int32_t id) { return std::ranges::find(wanted, id) != wanted.end(); };
  for (const int32_t id : wanted) {
    if (std::ranges::find(*ids, id) != ids->end()) continue;
    const auto worst = std::find_if_not(ids->rbegin(), ids->rend(), is_wanted);
    if (worst != ids->rend()) *worst = id;
  }
}

}  // namespace

Result<std::vector<int32_t>> choose_draft_vocab(const SpeculativeConfig& config, int32_t vocab_size,
                                                std::span<const int32_t> eos_ids) {
  const int wanted = config.draft_vocab_size;
  if (wanted == 0 && config.draft_vocab_file.empty()) return std::vector<int32_t>();
  if (wanted < 0 || wanted > vocab_size) {
    return invalid_argument("speculative config: draft_vocab_size is " + std::to_string(wanted) +
                            "; give a number from 1 to the target's vocabulary of " +
                            std::to_string(vocab_size) + ", or leave it out");
  }
  FT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, ranked_ids(config.draft_vocab_file, vocab_size));
  if (wanted > static_cast<int>(ids.size())) {
    return invalid_argument("speculative config: draft_vocab_size is " + std::to_string(wanted) +
                            ", but draft_vocab_file " + config.draft_vocab_file + " names only " +
                            std::to_string(ids.size()) +
                            " different ids; lower draft_vocab_size to that");
  }
  if (wanted > 0) ids.resize(static_cast<size_t>(wanted));
  std::vector<int32_t> eos(eos_ids.begin(), eos_ids.end());
  std::erase_if(eos, [&](int32_t id) { return id < 0 || id >= vocab_size; });
  keep_ids(&ids, eos);
  std::ranges::sort(ids);
  return ids;
}

}  // namespace foretoken
