#pragma once
#include <span>

#include "config/engine_field.h"

namespace foretoken {

// The rows of engine_fields() about ranks, engines and hosts, in the order of documents. They live
// for ever.
std::span<const EngineField> engine_rank_fields();

}  // namespace foretoken
