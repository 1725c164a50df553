#pragma once
#include <foretoken/engine.h>

#include <string>
#include <vector>

#include "gguf/model_files.h"

namespace foretoken {

// Texts that a model wants before those that it embeds.
struct EmbeddingPrompts {
  std::vector<EmbeddingPrompt> all;
  std::string usual;  // the name of the one of requests that name none; or empty
};

// As config_sentence_transformers.json of the model says. None where it has no such file; one that
// cannot be read is none, too, and the log tells why.
EmbeddingPrompts load_embedding_prompts(const ModelFiles& target);

}  // namespace foretoken
