#include "convert/to_gguf.h"

#include <string>
#include <vector>

#include "base/check.h"
#include "convert/config_keys.h"
#include "convert/gguf_conversion.h"
#include "convert/model_tensors.h"
#include "convert/requantize.h"
#include "convert/tokenizer_keys.h"
#include "gguf/container/gguf_writer.h"
#include "gguf/hf_names.h"
#include "model/files/checkpoint.h"
#include "model/registry.h"

namespace foretoken {
namespace {

// The tensors of a folder as they are to be written.
Result<std::vector<TensorToEncode>> tensors_to_encode(const ModelConfig& config,
                                                      const GgufArchitecture& architecture,
                                                      const GgufRecipe& recipe,
                                                      const Checkpoint& checkpoint) {
  const auto tensors = model_tensors(config, find_architecture(config.architecture)->decoder);
  FT_ASSIGN_OR_RETURN(const auto views, find_tensors(checkpoint, tensors));
  std::vector<TensorToEncode> wanted;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ModelTensor& tensor = tensors[i];
    const auto name = gguf_tensor_name(architecture, tensor.name);
    FT_CHECK_MSG(name.has_value(), tensor.name);
    const PlacedTensor placed{*name, tensor.shape, tensor.layer, tensor.is_output};
    FT_ASSIGN_OR_RETURN(const BlockType* type, type_of(recipe, placed, config.num_layers));
    wanted.push_back({{*name, type, tensor.shape},
                      views[i],
                      architecture.interleaves_heads ? tensor.turned_head_dim : 0});
  }
  return wanted;
}

std::string model_name(const ModelFiles& model) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(model.path(), ignored).filename().string();
}

}  // namespace

Result<int64_t> to_gguf(const ModelFiles& model, const GgufRecipe& recipe,
                        const ConvertOptions& options) {
  if (!is_gguf(options.output)) {
    return invalid_argument("'" + options.output +
                            "' does not end with .gguf, by which such files are known; name "
                            "another file");
  }
  if (model.is_gguf()) {
    FT_ASSIGN_OR_RETURN(const auto file, model.gguf());
    return requantize_gguf(*file, recipe, options);
  }
  FT_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(model, {}));
  const GgufArchitecture* architecture = gguf_architecture_for(config.architecture);
  if (architecture == nullptr) {
    return unsupported(model.text() + ": models of the architecture " + config.architecture +
                       " are not written as GGUF files; those that are: " + gguf_hf_classes());
  }
  GgufKeys keys;
  FT_RETURN_IF_ERROR(add_config_keys(config, *architecture, model.text(), keys));
  keys.add_text("general.name", model_name(model));
  keys.add_u32("general.file_type", recipe.file_type);
  keys.add_u32("general.quantization_version", kGgmlQuantizationVersion);
  FT_RETURN_IF_ERROR(add_tokenizer_keys(model, config.vocab_size, config.eos_token_ids, keys));
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(model));
  FT_ASSIGN_OR_RETURN(const std::vector<TensorToEncode> tensors,
                      tensors_to_encode(config, *architecture, recipe, checkpoint));
  const std::vector<float> divisors = rope_divisors(config.rope.full);
  GgufTensorEntry frequencies;
  if (!divisors.empty()) {
    frequencies = {"rope_freqs.weight", find_block_type("F32"), {std::ssize(divisors)}};
  }
  GgufConversion conversion(options);
  FT_RETURN_IF_ERROR(conversion.run(keys, tensors, frequencies, divisors));
  return conversion.num_bytes();
}

}  // namespace foretoken
