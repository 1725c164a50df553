#pragma once
#include <foretoken/engine.h>

#include <string>
#include <vector>

namespace foretoken {

// What drafts for a request: "ngram+eagle3".
struct ServedDrafters {
  std::string method;              // empty: the engine has no drafter
  int num_speculative_tokens = 0;  // most drafts of a sequence and step
};

// Of an engine's drafters, those that `method` names (SpeculativeParams::method). Where it names
// none, or one that the engine does not have, the first and those that it leads to.
ServedDrafters served_drafters(const std::vector<DrafterInfo>& drafters, const std::string& method);

}  // namespace foretoken
