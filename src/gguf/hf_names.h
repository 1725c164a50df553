#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {

// A name in GGUF files, and what Hugging Face calls the same.
struct GgufName {
  std::string_view gguf;
  std::string_view hf;
};

// A metadata key of an architecture, and the field of config.json that says the same.
struct GgufKey {
  std::string_view key;  // behind "<architecture>."
  std::string_view field;
  // What the file's number is to the field's: the same, or one divided by it.
  bool inverse = false;
  bool is_flag = false;  // true or false instead of a number
};

// An architecture that is read, as data: general.architecture, what config.json calls it, and how
// files of it differ from those of Llama.
struct GgufArchitecture {
  std::string_view name;
  std::string_view hf_class;
  std::string_view model_type;
  // Query and key rows of a head alternate between its two halves (the pairs that RoPE turns lie
  // side by side), while Hugging Face has one half behind the other.
  bool interleaves_heads = false;
  // Norm weights are stored as 1 + w, while Hugging Face has w.
  bool whole_norms = false;
  bool is_written = false;  // by foretoken convert
  // Queries, keys and values may be one tensor where folders have three.
  bool joins_projections = false;
  // Tensors of layers under other names than Llama's, in front of ".weight" or ".bias", or whole.
  std::span<const GgufName> tensors = {};
  // Whole names outside of layers that are not Llama's, and what comes before a layer's number.
  std::span<const GgufName> model_tensors = {};
  std::string_view layers = "model.layers.";
  // Before the number of a draft module's layer in folders, from 0; empty: layers of modules go on
  // behind the model's, as they do in all files.
  std::string_view modules = {};
  // Of modules, whole: names in such a layer that are not those of the model's, and names that
  // folders have outside of it.
  std::span<const GgufName> module_tensors = {};
  std::span<const GgufName> module_ends = {};
  std::span<const GgufKey> keys = {};
  // JSON object of the fields that files of this architecture do not say.
  std::string_view fields = "{}";
  // JSON object of the fields of a scaled rotary embedding that files do not say.
  std::string_view rope_scaling = "{}";
  // Keys, without the architecture, of numbers of all layers or a list of one for each, which
  // folders have as tensors of one element behind a layer's number.
  std::span<const GgufName> numbers = {};
  // Tensors of layers, behind the number, that `read` turns into fields.
  std::span<const std::string_view> in_config = {};
  // Fields that follow from others.
  void (*complete)(nlohmann::json& config) = nullptr;
  // Fields that more of the file says than single keys; behind `complete`.
  Status (*read)(const GgufFile& file, nlohmann::json& config) = nullptr;
};

std::span<const GgufArchitecture> gguf_architectures();

// The name of a tensor in a Hugging Face checkpoint of the same model; none for tensors that such a
// checkpoint does not hold.
std::optional<std::string> hf_tensor_name(const GgufArchitecture& architecture,
                                          std::string_view gguf_name);

// The number of the layer that a tensor is of; -1: of none.
int64_t layer_of_tensor(std::string_view gguf_name);

// Whether the names of draft modules are known; those of others are left out.
bool reads_modules(const GgufArchitecture& architecture);

// The same in a file of a model of so many layers, behind which its draft modules stand.
std::optional<std::string> hf_tensor_name(const GgufArchitecture& architecture,
                                          std::string_view gguf_name, int64_t num_layers);

// The other way; none for tensors that GGUF files do not hold.
std::optional<std::string> gguf_tensor_name(const GgufArchitecture& architecture,
                                            std::string_view hf_name);

// Whether a tensor is no weight: what it says is part of config.json.
bool is_config_tensor(const GgufArchitecture& architecture, std::string_view gguf_name);

// Whether a tensor belongs to what reads images or sounds, which Ollama keeps in the same file.
bool is_media_tensor(std::string_view gguf_name);

// Unsupported names the architecture with what stands in the way, or lists what exists.
Result<const GgufArchitecture*> gguf_architecture(const GgufFile& file);

// How models of a Hugging Face class are written: Llama, Mistral (as llama), Qwen 2 and 3. Null for
// other classes.
const GgufArchitecture* gguf_architecture_for(std::string_view hf_class);
// Those classes, for messages.
std::string gguf_hf_classes();

}  // namespace foretoken
