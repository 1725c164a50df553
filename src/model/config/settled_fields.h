#pragma once
#include <nlohmann/json.hpp>

#include "gguf/model_files.h"

// What the weights are asked here they are asked the first time that one of the copies of `model`
// is read (ModelFiles::weights_fact). Any thread.
namespace foretoken {

// The fields of a folder's config.json whose class is a body, as "Qwen2Model" of models that embed,
// with the class that has an output matrix around it. Where the files hold none, the embedding is
// tied to it, with a warning. GGUF files and other classes are given back as they are.
nlohmann::json with_whole_class(const ModelFiles& model, nlohmann::json config);

// The fields of a folder's config.json with tie_word_embeddings as its weights tell where they are
// in doubt, as transformers 5 reads them: files that have an output matrix other than the embedding
// are of a model whose two are apart, and where a text_config denies what the fields around it say,
// files without one are of a model that ties them. GGUF files, folders without weights and fields
// that are clear are given back as they are; few rows of both matrices are compared.
nlohmann::json with_settled_head(const ModelFiles& model, nlohmann::json config);

// The fields of a folder's config.json as its weights want them that MLX's tools have sanitised
// (Architecture::take_mlx), where they multiplied what the fields multiply, or left tensors out.
// GGUF files, other families and the folders of other tools are given back as they are.
nlohmann::json with_mlx_weights(const ModelFiles& model, nlohmann::json config);

}  // namespace foretoken
