#pragma once
#include <foretoken/request.h>

#include "gguf/model_files.h"

namespace foretoken {

// How a model says that its states are pooled: a folder by the module Pooling of
// sentence-transformers (modules.json, which names its folder, or else 1_Pooling/config.json), a
// GGUF file by `pooling_type`. Where it says nothing, the first state of a model whose rows see
// later ones, the last one of another. What judges texts goes by classifier_pooling of its
// config.json, where that is there. A kind that there is not, and several at once, are told in a
// warning.
Pooling own_pooling(const ModelFiles& model, bool bidirectional);

}  // namespace foretoken
