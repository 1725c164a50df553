#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "convert/convert_options.h"
#include "convert/model_tensors.h"
#include "gguf/model_files.h"

namespace foretoken {

// A tensor of a safetensors file that is to be written.
struct NewTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t num_bytes;
};

// How the matrices of layers are stored in a quantised Hugging Face folder.
struct FolderForm {
  nlohmann::json quantization;  // quantization_config
  // Its list of modules that stay as they are (empty: it has none), and whether that may hold
  // compressed-tensors' patterns ("re:...") in place of names.
  std::string plain_modules = "ignore";
  bool has_patterns = true;
  // Another file of the folder, made of the whole quantization_config; empty: none.
  std::string also_named;
  std::function<nlohmann::json(const nlohmann::json& quantization)> also;
  // The tensors that a matrix [n, k] becomes, named behind `base`, the matrix' name without
  // ".weight". Unsupported where its shape does not fit. Called for all before the first is
  // written.
  std::function<Result<std::vector<NewTensor>>(const std::string& base, const ModelTensor& tensor,
                                               const TensorView& view)>
      plan;
  // Appends their bytes, in that order.
  using Append = std::function<Status(const void* data, int64_t bytes)>;
  std::function<Status(const ModelTensor& tensor, const TensorView& view, const Append& append)>
      write;
};

// The quantization_config of compressed-tensors for the matrices of layers: their `format`, and
// what it says of weights and of their inputs (null: not rounded).
nlohmann::json compressed_tensors_config(const std::string& format, const nlohmann::json& weights,
                                         const nlohmann::json& inputs);

// The two files in which ModelOpt says how it quantised: config.json and hf_quant_config.json. A
// `group` of 0 is none.
FolderForm modelopt_form(const std::string& algorithm, int64_t group);

// Writes a Hugging Face folder as another one whose layers' matrices, without routers, are stored
// so; other tensors, draft modules (MTP) among them, and files are copied. Returns the bytes of
// model.safetensors. `options.output` is a folder that does not exist or is empty, and is there
// whole or not at all. Unsupported names an architecture whose matrices cannot be told,
// InvalidArgument files that are quantised already; Aborted when cancelled.
Result<int64_t> write_quantized_folder(const ModelFiles& model, const FolderForm& form,
                                       const ConvertOptions& options);

}  // namespace foretoken
