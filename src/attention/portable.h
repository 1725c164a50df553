#pragma once
#include "attention/backend.h"

namespace foretoken {

// The attention op of the device's own op table: runs wherever Foretoken runs.
const AttentionBackend& portable_attention();

}  // namespace foretoken
