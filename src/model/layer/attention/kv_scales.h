#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "kernels/attention/kv_layer.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// What the codes of a layer's keys and values are multiplied by in a cache of KvFormat::kFp8: of
// the heads of a rank, in device memory. Null: 1.
struct KvScales {
  const float* keys = nullptr;
  const float* values = nullptr;

  // The layer's entries with them, if they are such codes.
  KvLayer of(KvLayer kv) const {
    if (kv.format != KvFormat::kFp8) return kv;
    kv.k_scales = keys;
    kv.v_scales = values;
    return kv;
  }
};

// Loads them where a checkpoint has them below `base`, for example "model.layers.3.self_attn.", by
// the names that vLLM reads: a number, or one for each of `num_kv_heads`, the heads of the whole
// layer. A scale of both (kv_scale), or of one of them alone, is that of keys and values. Scales
// that stand beside biases (ModelOpt's FP8_AFFINE) are left aside. InvalidArgument names a tensor
// of another shape or a scale that no code can be divided by. Errors
// otherwise as of WeightLoader.
Status load_kv_scales(PartLoader& loader, const std::string& base, int32_t num_kv_heads,
                      KvScales* out);

// Marks what a checkpoint may have of them where nothing reads them, and the scales of queries and
// of softmax weights, which are not rounded here.
void ignore_attention_scales(PartLoader& loader, const std::string& base);

}  // namespace foretoken
