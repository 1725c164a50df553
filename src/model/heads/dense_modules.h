#pragma once
#include <cstdint>

#include "base/result.h"
#include "gguf/model_files.h"
#include "model/heads/row_layers.h"

namespace foretoken {

// The modules Dense of sentence-transformers that a pooled state goes through before it is divided
// by its length: those that modules.json of the model's folder names behind Pooling, each in a
// folder of its own (EmbeddingGemma: 2_Dense, 3_Dense), or those of a GGUF file. Empty where there
// are none. InvalidArgument or NotFound names the file at fault, Unsupported an activation that is
// not built.
Result<RowLayers> load_dense_modules(const ModelFiles& model, int32_t hidden_size);

// Those of a folder whose modules.json has no Pooling, which the state of each token goes through
// (PyLate); empty where there are none. Errors as of load_dense_modules.
Result<RowLayers> load_token_modules(const ModelFiles& model);

}  // namespace foretoken
