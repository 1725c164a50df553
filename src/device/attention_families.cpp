#include "device/attention_families.h"

namespace foretoken {

const char* attention_family_name(AttentionFamily family) {
  switch (family) {
    case AttentionFamily::kPortable:
      return "portable";
    case AttentionFamily::kFlash:
      return "flash";
    case AttentionFamily::kFlashInfer:
      return "flashinfer";
    case AttentionFamily::kFlex:
      return "flex";
    case AttentionFamily::kFlashMla:
      return "flashmla";
    case AttentionFamily::kFlashInferMla:
      return "flashinfer_mla";
    case AttentionFamily::kCutlassMla:
      return "cutlass_mla";
  }
  return "";
}

bool has_attention(const Device& device, AttentionFamily family) {
  const AttentionFamilies* families = device.attention_families();
  if (families != nullptr) return families->has_attention(family);
  return family == AttentionFamily::kPortable || family == AttentionFamily::kFlex;
}

Result<std::shared_ptr<const void>> hold_flex(const Device& device, const FlexProgram& program,
                                              DType dtype, KvFormat format) {
  const AttentionFamilies* families = device.attention_families();
  if (families != nullptr) return families->hold_flex(program, dtype, format);
  return std::shared_ptr<const void>();
}

}  // namespace foretoken
