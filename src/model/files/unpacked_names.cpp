#include "model/files/unpacked_names.h"

#include <string_view>

namespace foretoken {
namespace {

using Tensors = std::map<std::string, const TensorView*>;

constexpr std::string_view kWholeWeight = ".weight";
constexpr std::string_view kMaskBits = ".bitmask";
constexpr std::string_view kPlaceBits = ".meta";
constexpr int64_t kSixBitBytes = 24;  // of the codes that share a power of two

std::string base_of(const std::string& name, std::string_view ending) {
  return name.substr(0, name.size() - ending.size());
}

const TensorView* take_part_of(const Tensors& tensors, const std::string& name,
                               NamedUnpacked* named) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return nullptr;
  named->names.push_back(name);
  return found->second;
}

NamedUnpacked masked_matrix(const Tensors& tensors, const std::string& base) {
  NamedUnpacked named;
  named.name = base.ends_with(kWholeWeight) ? base : base + std::string(kWholeWeight);
  named.parts.packing = Packing::kMask;
  named.parts.places = take_part_of(tensors, base + std::string(kMaskBits), &named);
  named.parts.values = take_part_of(tensors, base + ".compressed", &named);
  named.parts.shape = take_part_of(tensors, base + ".shape", &named);
  named.parts.starts = take_part_of(tensors, base + ".row_offsets", &named);
  return named;
}

NamedUnpacked marlin_matrix(const Tensors& tensors, const std::string& base, int32_t bits) {
  NamedUnpacked named;
  named.name = base + ".weight_packed";
  named.parts.packing = Packing::kMarlin24;
  named.parts.bits = bits;
  named.parts.places = take_part_of(tensors, base + std::string(kPlaceBits), &named);
  named.parts.values = take_part_of(tensors, named.name, &named);
  named.marlin_scales = take_part_of(tensors, base + ".scale_packed", &named);
  return named;
}

// Bytes with a power of two for each 24 of them.
bool is_of_six_bits(const Tensors& tensors, const std::string& name, const TensorView& codes) {
  if (codes.dtype_name != "U8" || codes.shape.size() < 2 || !name.ends_with(kWholeWeight))
    return false;
  const auto found = tensors.find(name + "_scale");
  if (found == tensors.end()) return false;
  const TensorView& scales = *found->second;
  return scales.dtype_name == "U8" && scales.shape.size() == codes.shape.size() &&
         codes.shape.back() == scales.shape.back() * kSixBitBytes;
}

Status lacks(const TensorView& tensor, const std::string& base, const char* what) {
  return invalid_argument(tensor.file + ": the matrix '" + base + "' lacks its " + what +
                          "; fetch the checkpoint again");
}

}  // namespace

Result<std::vector<NamedUnpacked>> find_unpacked(const Tensors& tensors,
                                                 const Quantization& quantization) {
  std::vector<NamedUnpacked> found;
  for (const auto& [name, tensor] : tensors) {
    if (name.ends_with(kMaskBits)) {
      const std::string base = base_of(name, kMaskBits);
      found.push_back(masked_matrix(tensors, base));
      const UnpackedParts& parts = found.back().parts;
      if (parts.values == nullptr) return lacks(*tensor, base, "elements (compressed)");
      if (parts.shape == nullptr) return lacks(*tensor, base, "shape");
    } else if (name.ends_with(kPlaceBits) &&
               tensors.contains(base_of(name, kPlaceBits) + ".scale_packed")) {
      const std::string base = base_of(name, kPlaceBits);
      found.push_back(marlin_matrix(tensors, base, quantization.bits));
      if (found.back().parts.values == nullptr) return lacks(*tensor, base, "weight_packed");
    } else if (quantization.six_bits != SixBits::kNone && is_of_six_bits(tensors, name, *tensor)) {
      NamedUnpacked& named = found.emplace_back();
      named.name = name;
      named.names = {name};
      named.parts.values = tensor;
      named.parts.packing =
          quantization.six_bits == SixBits::kE3m2 ? Packing::kE3m2 : Packing::kE2m3;
    }
  }
  return found;
}

bool has_unpacked(const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (name.ends_with(kMaskBits) || name.ends_with(".scale_packed")) return true;
    if (is_of_six_bits(tensors, name, *tensor)) return true;
  }
  return false;
}

}  // namespace foretoken
