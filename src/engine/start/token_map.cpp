#include "engine/start/token_map.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>

namespace foretoken {
namespace {

constexpr double kLeastShare = 0.5;

// What a token is, whatever its vocabulary calls it; empty: there is no such token.
std::string identity(const Tokenizer& tokenizer, int32_t id) {
  if (id == tokenizer.eos_id()) return "E";
  if (id == tokenizer.bos_id()) return "B";
  const std::optional<std::string> bytes = tokenizer.token_bytes(id);
  if (!bytes) return {};
  return (tokenizer.is_special(id) ? "S" : "T") + *bytes;
}

// The ids of one vocabulary by identity. Where two ids stand for the same bytes, the one that is
// not a fallback for a byte, and then the lower one, is the token.
class TokenIndex {
 public:
  explicit TokenIndex(const Vocabulary& vocabulary)
      : identities_(
            static_cast<size_t>(std::min(vocabulary.size, vocabulary.tokenizer.vocab_size()))) {
    const Tokenizer& tokenizer = vocabulary.tokenizer;
    for (int32_t id = 0; id < size(); ++id) {
      std::string& name = identities_[static_cast<size_t>(id)];
      name = identity(tokenizer, id);
      if (name.empty()) continue;
      const auto [at, is_new] = ids_.try_emplace(name, id);
      if (!is_new && tokenizer.fallback_byte(at->second) && !tokenizer.fallback_byte(id)) {
        at->second = id;
      }
    }
  }

  int32_t size() const { return static_cast<int32_t>(identities_.size()); }
  const std::string& identity_of(int32_t id) const { return identities_[static_cast<size_t>(id)]; }
  std::optional<int32_t> find(const std::string& name) const {
    const auto at = ids_.find(name);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
  }
  // Different tokens.
  size_t num_tokens() const { return ids_.size(); }
  const std::unordered_map<std::string, int32_t>& ids() const { return ids_; }

 private:
  std::vector<std::string> identities_;
  std::unordered_map<std::string, int32_t> ids_;
};

// The first id that is one token here and another there; none: what both have is the same. Roles
// may be written down for one tokenizer only.
std::optional<int32_t> first_difference(const Vocabulary& target, const TokenIndex& target_index,
                                        const Vocabulary& draft, const TokenIndex& draft_index) {
  for (int32_t id = 0; id < std::min(target_index.size(), draft_index.size()); ++id) {
    const std::string& a = target_index.identity_of(id);
    const std::string& b = draft_index.identity_of(id);
    if (a.empty() || b.empty() || a == b) continue;
    if (target.tokenizer.id_to_token(id) != draft.tokenizer.id_to_token(id)) return id;
  }
  return std::nullopt;
}

// A draft id for a target token that the draft does not have: the last one of its text.
int32_t stand_in(const std::string& name, const Tokenizer& draft, int32_t draft_vocab) {
  int32_t id = draft.bos_id().value_or(0);
  if (name.starts_with('E')) {
    id = draft.eos_id().value_or(id);
  } else if (name.size() > 1) {
    const auto ids = draft.encode(std::string_view(name).substr(1), false);
    if (ids.ok() && !ids.value().empty()) id = ids.value().back();
  }
  return id >= 0 && id < draft_vocab ? id : 0;
}

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

std::string shown(const Tokenizer& tokenizer, int32_t id) {
  return "'" + tokenizer.id_to_token(id).value_or("") + "'";
}

}  // namespace

Result<TokenMap> map_tokens(const Vocabulary& target, const Vocabulary& draft, bool heterogeneous) {
  const TokenIndex target_index(target);
  const TokenIndex draft_index(draft);
  const std::optional<int32_t> difference =
      first_difference(target, target_index, draft, draft_index);
  TokenMap map;
  if (!difference) return map;
  if (!heterogeneous) {
    return invalid_argument(
        "speculative config: the draft model has another tokenizer than the target (id " +
        std::to_string(*difference) + " is " + shown(target.tokenizer, *difference) +
        " there and " + shown(draft.tokenizer, *difference) +
        " here); use a draft model of the target's family, or set use_heterogeneous_vocab");
  }
  map.to_target.assign(static_cast<size_t>(draft.size), -1);
  size_t common = 0;
  for (const auto& [name, draft_id] : draft_index.ids()) {
    const std::optional<int32_t> id = target_index.find(name);
    if (!id) continue;
    map.to_target[static_cast<size_t>(draft_id)] = *id;
    ++common;
  }
  const size_t smaller = std::min(target_index.num_tokens(), draft_index.num_tokens());
  map.share = smaller == 0 ? 0 : static_cast<double>(common) / static_cast<double>(smaller);
  if (map.share < kLeastShare) {
    return invalid_argument(
        "speculative config: the draft model's vocabulary has only " + percent(map.share) +
        " of the smaller vocabulary in common with the "
        "target's, less than " +
        percent(kLeastShare) + "; use a draft model with a tokenizer nearer to the target's");
  }
  map.to_draft.resize(static_cast<size_t>(target.size));
  for (int32_t id = 0; id < target.size; ++id) {
    const std::string name = id < target_index.size() ? target_index.identity_of(id) : "";
    const std::optional<int32_t> equal = draft_index.find(name);
    map.to_draft[static_cast<size_t>(id)] =
        equal ? *equal : stand_in(name, draft.tokenizer, draft.size);
  }
  return map;
}

}  // namespace foretoken
