#pragma once
#include "model/config.h"

namespace foretoken {

// Tokens of context whose attention takes about as long as the rest of a prompt's row, counted from
// the model's shape; 0 where no layer sees all of the context, so that rows never weigh more.
int context_per_row(const ModelConfig& config);

}  // namespace foretoken
