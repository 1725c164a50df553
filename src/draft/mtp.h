#pragma once
#include <memory>

#include "base/result.h"
#include "draft/parts/drafter.h"
#include "draft/registry.h"

namespace foretoken {

// Multi-token prediction (DeepSeek-AI 2024): the modules that the target was trained with, one a
// draft, the last one repeated beyond them.
Result<std::unique_ptr<Drafter>> make_mtp_drafter(const DrafterContext& context);

}  // namespace foretoken
