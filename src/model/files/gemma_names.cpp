#include "model/files/gemma_names.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <string_view>

namespace foretoken {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Tensors = std::map<std::string, const TensorView*>;

constexpr std::string_view kTable = ".embedding_quantized";
constexpr std::string_view kTableScale = ".embedding_scale";
constexpr std::string_view kLinear = ".weight";
constexpr std::string_view kRanges[] = {".input_activation_scale", ".output_activation_scale",
                                        ".k_cache_scale", ".v_cache_scale"};
// Letters, so that no pattern takes long or much of the stack.
constexpr size_t kMaxPattern = 256;
constexpr size_t kMaxPath = 512;
constexpr int kMaxRepetitions = 4;

struct BitsOfModules {
  std::regex pattern;
  int32_t bits;
};

std::string without_ending(const std::string& name, std::string_view ending) {
  return name.substr(0, name.size() - ending.size());
}

// Bytes with a scale a row; those of other tools have more scales.
bool is_linear(const Tensors& tensors, const std::string& name, const TensorView& codes) {
  if (!name.ends_with(kLinear) || codes.dtype_name != "U8" || codes.shape.size() != 2) return false;
  const auto scales = tensors.find(name + "_scale");
  return scales != tensors.end() && scales->second->dtype != FileDType::kOther &&
         scales->second->shape == std::vector<int64_t>{codes.shape[0], 1};
}

Result<int32_t> read_bits(const OrderedJson& options, int32_t otherwise, const std::string& where) {
  const auto found = options.find("num_bits");
  if (found == options.end()) return otherwise;
  if (*found == 2 || *found == 4 || *found == 8) return found->get<int32_t>();
  return invalid_argument(where + ": 'num_bits' of quantization_config is " +
                          found->dump().substr(0, 80) +
                          ", but Gemma's matrices have 2, 4 or 8 bits; fetch the config.json of "
                          "the model");
}

// Whether matching is short work whatever the name: few repetitions, and none of groups.
bool is_simple(const std::string& text) {
  int repetitions = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      continue;
    }
    const bool repeats = std::string_view("*+{").find(text[i]) != std::string_view::npos;
    if (repeats && i > 0 && text[i - 1] == ')' && (i < 2 || text[i - 2] != '\\')) return false;
    repetitions += repeats ? 1 : 0;
  }
  return repetitions <= kMaxRepetitions && text.size() <= kMaxPattern;
}

Result<std::regex> read_pattern(const std::string& text, const std::string& where) {
  if (is_simple(text)) {
    try {
      return std::regex(text, std::regex::ECMAScript | std::regex::nosubs);
    } catch (const std::regex_error&) {
    }
  }
  return invalid_argument(where + ": '" + text.substr(0, 80) +
                          "' of module_quant_configs is no pattern of names that can be read; "
                          "fetch the config.json of the model");
}

Result<std::vector<BitsOfModules>> read_modules(const OrderedJson& quantization, int32_t otherwise,
                                                const std::string& where) {
  std::vector<BitsOfModules> all;
  const auto found = quantization.find("module_quant_configs");
  if (found == quantization.end() || !found->is_object()) return all;
  for (const auto& [text, options] : found->items()) {
    FT_ASSIGN_OR_RETURN(std::regex pattern, read_pattern(text, where));
    FT_ASSIGN_OR_RETURN(const int32_t bits, read_bits(options, otherwise, where));
    all.push_back({std::move(pattern), bits});
  }
  return all;
}

// None where the tensor holds no codes of this kind.
std::optional<GemmaMatrix> matrix_at(const Tensors& tensors, const std::string& name,
                                     const TensorView& tensor) {
  const bool is_table = name.ends_with(kTable);
  if (!is_table && !is_linear(tensors, name, tensor)) return std::nullopt;
  const std::string base = without_ending(name, is_table ? kTable : kLinear);
  const std::string scales = base + std::string(is_table ? kTableScale : ".weight_scale");
  GemmaMatrix matrix{base + ".weight", {name}, &tensor, nullptr, 4};
  if (const auto other = tensors.find(scales); other != tensors.end()) {
    matrix.scales = other->second;
    matrix.names.push_back(scales);
  }
  return matrix;
}

}  // namespace

bool has_gemma(const Tensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const auto& entry) {
    return entry.first.ends_with(kTable) || is_linear(tensors, entry.first, *entry.second);
  });
}

bool is_gemma_range(std::string_view name) {
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

Result<std::vector<GemmaMatrix>> find_gemma(const Tensors& tensors, const OrderedJson& quantization,
                                            const std::string& where) {
  FT_ASSIGN_OR_RETURN(const int32_t otherwise, read_bits(quantization, 4, where));
  FT_ASSIGN_OR_RETURN(const auto modules, read_modules(quantization, otherwise, where));
  std::vector<GemmaMatrix> all;
  for (const auto& [name, tensor] : tensors) {
    std::optional<GemmaMatrix> matrix = matrix_at(tensors, name, *tensor);
    if (!matrix) continue;
    if (matrix->scales == nullptr) {
      return invalid_argument(tensor->file + ": the quantised table '" + name +
                              "' lacks its scales (embedding_scale); fetch the checkpoint again");
    }
    const std::string& own = tensor->name;
    const std::string path = own.substr(0, own.rfind('.'));
    if (path.size() > kMaxPath) {
      return invalid_argument(tensor->file + ": the name '" + path.substr(0, 80) +
                              "...' of a tensor is longer than " + std::to_string(kMaxPath) +
                              " letters; fetch the checkpoint again");
    }
    const auto said = std::find_if(modules.begin(), modules.end(), [&](const BitsOfModules& rule) {
      return std::regex_search(path, rule.pattern);
    });
    matrix->bits = said != modules.end() ? said->bits : otherwise;
    if (tensor->dtype_name == "I8") matrix->bits = 8;
    all.push_back(std::move(*matrix));
  }
  return all;
}

}  // namespace foretoken
