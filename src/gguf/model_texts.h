#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

// The text files of a model; for a GGUF file config.json, generation_config.json, tokenizer.json
// and tokenizer_config.json are made from its metadata, and the latter two for a folder from its
// vocabulary in another form (gguf/vocabulary/folder_tokenizer.h), config.json for one of Mistral's
// own layout or Meta's (gguf/mistral_params.h, gguf/meta_params.h). None where the model has no
// such file.
Result<std::optional<std::string>> read_model_text(const ModelFiles& model, std::string_view name);

// Whether `read_model_text` finds something, without making it.
bool has_model_text(const ModelFiles& model, std::string_view name);

}  // namespace foretoken
