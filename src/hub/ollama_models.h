#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "hub/hub_options.h"

namespace foretoken {

// A model that Ollama has fetched: its GGUF file among the blobs, and what its Modelfile set.
struct OllamaModel {
  std::string gguf;
  // PARAMETERs in the names of generation_config.json: temperature, top_p, top_k, min_p and
  // repetition_penalty; an object.
  nlohmann::json sampling = nlohmann::json::object();
};

// The folder that holds Ollama's `manifests` and `blobs`: OLLAMA_MODELS, else ~/.ollama/models,
// else that of the service on Linux. Empty: there is none.
std::string ollama_folder(const EnvironmentLookup& lookup);

// The model of a manifest that is named by its path (~/.ollama/models/manifests/.../NAME/TAG), or,
// where `folder` is not empty, by a name that has a manifest there: NAME, NAME:TAG or
// HOST/ORG/NAME:TAG. None where it is neither. NotFound where the blob is missing; Unsupported for
// models with adapters.
Result<std::optional<OllamaModel>> find_ollama_model(const std::string& model,
                                                     const std::string& folder);

}  // namespace foretoken
