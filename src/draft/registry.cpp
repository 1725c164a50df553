#include "draft/registry.h"

#include <sstream>
#include <string>

#include "draft/ngram.h"
#include "kernels/step_types.h"

namespace foretoken {
namespace {

constexpr DrafterEntry kDrafters[] = {
    {"ngram", "ngram_gpu [ngram]", "prompt lookup in the sequence's own tokens",
     make_ngram_drafter},
};

bool names(const DrafterEntry& entry, const std::string& method) {
  if (method == entry.name) return true;
  std::istringstream aliases(entry.aliases);
  for (std::string alias; aliases >> alias;) {
    if (alias == method) return true;
  }
  return false;
}

}  // namespace

std::span<const DrafterEntry> drafters() { return kDrafters; }

Result<std::unique_ptr<Drafter>> make_drafter(const SpeculativeConfig& config) {
  if (config.method.empty()) return std::unique_ptr<Drafter>();
  std::string known;
  for (const DrafterEntry& entry : kDrafters) {
    if (!names(entry, config.method)) {
      known += (known.empty() ? "" : ", ") + std::string(entry.name);
      continue;
    }
    if (config.num_speculative_tokens < 1 || config.num_speculative_tokens > kMaxDrafts) {
      return invalid_argument("speculative config: num_speculative_tokens is " +
                              std::to_string(config.num_speculative_tokens) +
                              "; give a number from 1 to " + std::to_string(kMaxDrafts));
    }
    return entry.make(config);
  }
  return unsupported("speculative config: method '" + config.method +
                     "' is not available; use one of: " + known);
}

}  // namespace foretoken
