#pragma once
#include <optional>
#include <string>

#include "base/result.h"

namespace foretoken {

// The folder of a model that is named by one of its files: its config.json, an index, or weights in
// model.safetensors, pytorch_model.bin or their shards, beside a config.json. None for other paths.
std::optional<std::string> folder_of_named_file(const std::string& path);

// Unsupported says what a file or folder is that other programs write and that is not read, and
// what to use instead: CTranslate2, MLC, TensorRT-LLM, ONNX, llamafile, NeMo, training checkpoints
// and others, known by the names of their files. Folders with weights in the layout of transformers
// are none of them, whatever else they hold.
Status check_foreign_model(const std::string& path);

}  // namespace foretoken
