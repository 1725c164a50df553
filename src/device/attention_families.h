#pragma once
#include <cstdint>
#include <memory>

#include "device/device.h"

namespace foretoken {

// Families of kernels of which an attention op may take its own. A device without families has one
// implementation, which serves as kPortable and kFlex.
enum class AttentionFamily : uint8_t {
  kPortable,    // one source for every architecture
  kFlash,       // written for one architecture where they take the layer, else kPortable's
  kFlashInfer,  // of a library where they take the rows, else kFlash's: bits depend on the batch
  kFlex,        // kPortable's, or those that are compiled for a mask and a score
  kFlashMla,    // these are of libraries and take latents alone
  kFlashInferMla,
  kCutlassMla,
};

// As it stands in shapes of ops: "portable".
const char* attention_family_name(AttentionFamily family);

enum class KvFormat : uint8_t;
struct FlexProgram;

// Of a device that has several families (Device::attention_families).
class AttentionFamilies {
 public:
  virtual ~AttentionFamilies() = default;
  // Whether this build and the device have kernels of the family.
  virtual bool has_attention(AttentionFamily family) const = 0;
  // Makes ready what ops of kFlex with the program need, which is there as long as the result is
  // held; null: nothing is needed. Blocks while it compiles.
  virtual Result<std::shared_ptr<const void>> hold_flex(const FlexProgram&, DType, KvFormat) const {
    return std::shared_ptr<const void>();
  }
};

// The same of any device.
bool has_attention(const Device& device, AttentionFamily family);
Result<std::shared_ptr<const void>> hold_flex(const Device& device, const FlexProgram& program,
                                              DType dtype, KvFormat format);

}  // namespace foretoken
