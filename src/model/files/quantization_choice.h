#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

// How matrices that files hold unquantised are rounded while they are loaded.
enum class WeightRounding : uint8_t {
  kNone,
  kFp8,  // to E4M3 with a scale for each output channel (model/files/forms/rounded_tensor.h)
};

// What --quantization asks for, given by a name of vLLM's: a method by which the model's files are
// quantised already, which changes nothing, or fp8 for files that are not quantised. Empty and
// "none": nothing. `flag` is where it was given, for messages. InvalidArgument names the method of
// the files where it is another, and Unsupported one that is not known.
Result<WeightRounding> choose_quantization(const std::string& name, const ModelFiles& model,
                                           const std::string& flag = "--quantization");

}  // namespace foretoken
