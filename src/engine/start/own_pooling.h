#pragma once
#include <foretoken/request.h>

#include <string>

namespace foretoken {

// How a model's folder says that its states are pooled (the module Pooling of
// sentence-transformers: modules.json and 1_Pooling/config.json): kLast, kMean or kCls. Where it
// says nothing, the first state of a model whose rows see later ones, the last one of another. What
// judges texts goes by classifier_pooling of its config.json, where that is there. A kind that
// there is not is told in a warning.
Pooling own_pooling(const std::string& folder, bool bidirectional);

}  // namespace foretoken
