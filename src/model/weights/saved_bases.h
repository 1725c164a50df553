#pragma once
#include <string>

#include "base/result.h"
#include "gguf/model_files.h"
#include "model/weights/lora_adapter.h"

namespace foretoken {

// Whether the embedding or the output matrix that PEFT saved whole beside an adapter
// (LoraAdapter::bases) is the model's own, up to the rounding of their types, so that it may be
// left aside. Unsupported, naming tensor and remedy, where it has another shape or other values,
// or where the model's is quantised and so cannot be compared; errors as of Checkpoint::open.
// Reads the adapter at `folder` and those tensors of the model. Any thread.
Status check_saved_bases(const std::string& folder, const LoraAdapter& adapter,
                         const ModelFiles& model);

}  // namespace foretoken
