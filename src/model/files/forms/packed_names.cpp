#include "model/files/forms/packed_names.h"

namespace foretoken {
namespace {

// How the tensors of a matrix are called, behind its base name.
struct Endings {
  std::string_view codes;
  std::string_view scales;
  std::string_view zeros;
  std::string_view groups;
  std::string_view shape;
  bool needs_zeros;
};

constexpr Endings kPlain = {".qweight", ".scales", ".qzeros", ".g_idx", ".none", true};
constexpr Endings kCompressed = {".weight_packed", ".weight_scale", ".weight_zero_point",
                                 ".weight_g_idx",  ".weight_shape", false};
constexpr Endings kQuark = {".weight", ".weight_scale", ".weight_zero_point",
                            ".none",   ".none",         false};

// Null: the tensor holds no codes. Bytes in place of words are floats of four bits
// (model/files/forms/scaled_names.h).
const Endings* endings_of(const std::string& name, const TensorView& tensor) {
  if (name.ends_with(kPlain.codes)) return &kPlain;
  if (name.ends_with(kQuark.codes) && tensor.dtype_name == "I32") return &kQuark;
  const bool packed = name.ends_with(kCompressed.codes) && tensor.dtype_name != "U8";
  return packed ? &kCompressed : nullptr;
}

}  // namespace

Result<std::vector<NamedParts>> find_packed(const std::map<std::string, const TensorView*>& tensors,
                                            PackLayout layout) {
  const bool plain = layout == PackLayout::kGptq || layout == PackLayout::kAwq;
  const Endings& wanted = plain ? kPlain : layout == PackLayout::kQuark ? kQuark : kCompressed;
  std::vector<NamedParts> found;
  for (const auto& [name, tensor] : tensors) {
    const Endings* endings = endings_of(name, *tensor);
    if (endings == nullptr) continue;
    if (endings != &wanted) {
      return invalid_argument(tensor->file + ": tensor '" + name +
                              "' is of another layout than the one that quantization_config "
                              "names; weights and configuration must be of the same model");
    }
    NamedParts& named = found.emplace_back();
    named.base = name.substr(0, name.size() - endings->codes.size());
    const auto take = [&](std::string_view ending) -> const TensorView* {
      const auto other = tensors.find(named.base + std::string(ending));
      if (other == tensors.end()) return nullptr;
      named.names.push_back(other->first);
      return other->second;
    };
    named.parts = {take(endings->codes), take(endings->scales), take(endings->zeros),
                   take(endings->groups), take(endings->shape)};
    const bool whole =
        named.parts.scales != nullptr && (named.parts.zeros != nullptr || !endings->needs_zeros);
    if (whole) continue;
    return invalid_argument(tensor->file + ": the quantised matrix '" + named.base +
                            "' lacks its " + std::string(endings->scales.substr(1)) + " or " +
                            std::string(endings->zeros.substr(1)) +
                            "; fetch the checkpoint again or use the layout that "
                            "quantization_config names");
  }
  return found;
}

bool has_packed(const std::map<std::string, const TensorView*>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (endings_of(name, *tensor) != nullptr) return true;
  }
  return false;
}

}  // namespace foretoken
