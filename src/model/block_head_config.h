#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "model/config/config.h"
#include "model/config/config_fields.h"
#include "model/draft_head_config.h"

namespace foretoken {

// Fills in what a head has that drafts a block at once: taps, rows, mask, scales, which layers are
// causal, and what drafts add to the logits of those behind them, from config.json `file`,
// which `fields` are of; head->layer holds its sizes. Layouts: z-lab and SpecForge (dflash_config),
// speculators (the same fields at the top). InvalidArgument or Unsupported name the field at fault.
Status read_block_fields(const nlohmann::json& file, const ConfigFields& fields,
                         const ModelConfig& target, DraftHeadConfig* head);

}  // namespace foretoken
