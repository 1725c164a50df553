#pragma once
#include "attention/backend.h"

namespace foretoken {

// The attention op with AttentionArgs::any_order: long runs go to FlashInfer's kernel where it
// takes them, everything else to the device's own.
const AttentionBackend& flashinfer_attention();

}  // namespace foretoken
