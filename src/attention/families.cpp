#include "attention/families.h"

#include <array>

namespace foretoken {
namespace {

constexpr std::array kPlainFormat = {KvFormat::kPlain};
constexpr std::array kAllFormats = {KvFormat::kPlain, KvFormat::kInt8, KvFormat::kFp8};
constexpr std::array kEverywhere = {AttentionPlace{DeviceType::kCpu, kAllFormats},
                                    AttentionPlace{DeviceType::kCuda, kAllFormats}};
constexpr std::array kCudaAll = {AttentionPlace{DeviceType::kCuda, kAllFormats}};
constexpr std::array kCudaPlain = {AttentionPlace{DeviceType::kCuda, kPlainFormat}};

constexpr const char* kHopper = "a GPU of compute capability 9.0 (H100, H200)";

constexpr bool has_wide_heads(const AttentionDemand& demand) {
  return demand.dtype == DType::kBF16 && (demand.head_dim == 64 || demand.head_dim == 128);
}

constexpr bool has_deepseek_latents(const AttentionDemand& demand) {
  return demand.dtype == DType::kBF16 && demand.head_dim == 576 && demand.value_dim == 512;
}

constexpr bool has_dense_deepseek_latents(const AttentionDemand& demand) {
  return has_deepseek_latents(demand) && !demand.is_sparse;
}

// A row of a library's kernels, whose bits depend on what else a step has.
constexpr AttentionTraits library_latents(const char* name, std::span<const char* const> aliases,
                                          const char* description, const char* device_needs,
                                          AttentionFamily family) {
  return {
      .name = name,
      .aliases = aliases,
      .description = description,
      .family = family,
      .places = kCudaPlain,
      .is_latent = true,
      .batch_invariant = false,
      .only_by_name = true,
      .device_needs = device_needs,
      .model_needs = "bfloat16, latents of 512 + 64 elements and rows that attend to all positions",
      .serves = has_dense_deepseek_latents};
}

// The same, over the only blocks that it reads.
constexpr AttentionTraits of_blocks(AttentionTraits traits, int32_t block_size) {
  traits.block_size = block_size;
  return traits;
}

}  // namespace

const AttentionBackend& flash_attention() {
  static constexpr std::array aliases = {"FLASH_ATTN"};
  static constexpr AttentionBackend backend(
      {.name = "flash",
       .aliases = aliases,
       .description = "the copy engine and asynchronous products of Hopper, for decoding and "
                      "prompts; bits as portable",
       .family = AttentionFamily::kFlash,
       .places = kCudaAll,
       .device_needs = kHopper,
       .model_needs = "bfloat16, head sizes of 64 or 128 and scores without slopes",
       .serves = [](const AttentionDemand& demand) {
         return has_wide_heads(demand) && !demand.has_slopes;
       }});
  return backend;
}

const AttentionBackend& portable_attention() {
  static constexpr std::array aliases = {"TRITON_ATTN"};
  static constexpr AttentionBackend backend(
      {.name = "portable",
       .aliases = aliases,
       .description = "one source for every processor and GPU, and for every head size",
       .family = AttentionFamily::kPortable,
       .places = kEverywhere});
  return backend;
}

const AttentionBackend& flashinfer_attention() {
  static constexpr std::array aliases = {"FLASHINFER"};
  static constexpr AttentionBackend backend(
      {.name = "flashinfer",
       .aliases = aliases,
       .description = "prompts by FlashInfer's FlashAttention-3 kernel, the rest as flash",
       .family = AttentionFamily::kFlashInfer,
       .places = kCudaPlain,
       .batch_invariant = false,
       .device_needs = "a GPU of compute capability 9.0 (H100, H200) and a CUDA plug-in that was "
                       "built for 90a with FlashInfer's headers, as ./quickstart --cuda does",
       .model_needs = "bfloat16, head sizes of 64 or 128, scores without soft cap or slopes and "
                      "layers without window whose rows attend to all positions",
       .serves = [](const AttentionDemand& demand) {
         return has_wide_heads(demand) && demand.softcap == 0 && !demand.has_slopes &&
                !demand.is_sparse && demand.has_full_layers;
       }});
  return backend;
}

const AttentionBackend& flex_attention() {
  static constexpr std::array aliases = {"FLEX_ATTENTION"};
  static constexpr AttentionBackend backend(
      {.name = "flex",
       .aliases = aliases,
       .description = "a mask and a score of one's own (--flex-mask, --flex-score); without them "
                      "as portable",
       .family = AttentionFamily::kFlex,
       .places = kEverywhere});
  return backend;
}

const AttentionBackend& flash_latent_attention() {
  static constexpr std::array aliases = {"FLASH_ATTN_MLA"};
  static constexpr AttentionBackend backend(
      {.name = "flash_mla",
       .aliases = aliases,
       .description = "latents by the copy engine and asynchronous products of Hopper",
       .family = AttentionFamily::kFlash,
       .places = kCudaAll,
       .is_latent = true,
       .device_needs = kHopper,
       .model_needs = "bfloat16 and latents of 512 + 64 elements",
       .serves = has_deepseek_latents});
  return backend;
}

const AttentionBackend& portable_latent_attention() {
  static constexpr std::array aliases = {"TRITON_MLA"};
  static constexpr AttentionBackend backend(
      {.name = "portable_mla",
       .aliases = aliases,
       .description = "latents by one source for every processor and GPU, of every size",
       .family = AttentionFamily::kPortable,
       .places = kEverywhere,
       .is_latent = true});
  return backend;
}

const AttentionBackend& flashmla_attention() {
  static constexpr std::array aliases = {"FLASHMLA"};
  static constexpr AttentionBackend backend(of_blocks(
      library_latents("flashmla", aliases,
                      "steps of up to 1,024 rows by DeepSeek's FlashMLA, longer ones as flash_mla",
                      "a GPU of compute capability 9.0 (H100, H200) and a CUDA plug-in that was "
                      "built for 90a with FORETOKEN_FLASHMLA_DIR, a folder of FlashMLA's source",
                      AttentionFamily::kFlashMla),
      64));
  return backend;
}

const AttentionBackend& flashinfer_latent_attention() {
  static constexpr std::array aliases = {"FLASHINFER_MLA"};
  static constexpr AttentionBackend backend(library_latents(
      "flashinfer_mla", aliases,
      "steps of up to 1,024 rows by FlashInfer's kernel for latents, longer ones as flash_mla",
      "a GPU of compute capability 9.0 (H100, H200) and a CUDA plug-in that was built for 90a "
      "with FlashInfer's headers, as ./quickstart --cuda does",
      AttentionFamily::kFlashInferMla));
  return backend;
}

const AttentionBackend& cutlass_latent_attention() {
  static constexpr std::array aliases = {"CUTLASS_MLA"};
  static constexpr AttentionBackend backend(library_latents(
      "cutlass_mla", aliases,
      "steps of up to 1,024 rows by CUTLASS's kernel for Blackwell, longer ones as portable_mla; "
      "compiled, not run",
      "a GPU of compute capability 10.0 (B200) and a CUDA plug-in that was built for 100a with "
      "FlashInfer's headers",
      AttentionFamily::kCutlassMla));
  return backend;
}

}  // namespace foretoken
