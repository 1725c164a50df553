#include "serve/answer/served_drafters.h"

#include <algorithm>
#include <sstream>

namespace foretoken {
namespace {

void add(const DrafterInfo& drafter, ServedDrafters* served) {
  served->method += (served->method.empty() ? "" : "+") + drafter.name;
  served->num_speculative_tokens =
      std::max(served->num_speculative_tokens, drafter.num_speculative_tokens);
}

ServedDrafters first_ones(const std::vector<DrafterInfo>& drafters) {
  ServedDrafters served;
  for (const DrafterInfo& drafter : drafters) {
    add(drafter, &served);
    if (!drafter.leads) break;
  }
  return served;
}

}  // namespace

ServedDrafters served_drafters(const std::vector<DrafterInfo>& drafters,
                               const std::string& method) {
  ServedDrafters served;
  std::istringstream names(method);
  for (std::string name; std::getline(names, name, '+');) {
    const auto named = std::ranges::find(drafters, name, &DrafterInfo::name);
    if (named == drafters.end()) return first_ones(drafters);
    add(*named, &served);
  }
  return served.method.empty() ? first_ones(drafters) : served;
}

}  // namespace foretoken
