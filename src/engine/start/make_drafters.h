#pragma once
#include <foretoken/config.h>

#include <memory>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "base/result.h"
#include "device/device.h"
#include "draft/parts/drafter.h"
#include "gguf/gguf_recipe.h"
#include "model/files/quantization_choice.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace foretoken {

// What the drafters of an engine are made from, beside their configurations. The references outlive
// them.
struct DrafterParts {
  Device& device;
  Model& target;
  const Tokenizer* tokenizer = nullptr;  // of the target; null: it has none
  const AttentionBackend* attention = nullptr;
  KvFormat kv_format = KvFormat::kPlain;            // of their KV, as of the target's
  WeightRounding rounding = WeightRounding::kNone;  // of the target
  const GgufRecipe* dummy_recipe = nullptr;         // LoadOptions::dummy_recipe of the target
  Sharding sharding = {};                           // of the target
  std::vector<std::string> folders;                 // of locate_drafters
  bool are_absent = false;                          // this rank's stage never drafts
};

// The drafters of a resolved configuration, in its order, loaded but without the memory that
// depends on the number of blocks. Errors say which drafter they are about.
Result<std::vector<std::unique_ptr<Drafter>>> make_drafters(const EngineConfig& config,
                                                            const DrafterParts& parts);

// How requests and statistics name the drafters: by method, from the second of one method on with
// a number, "eagle-2".
std::vector<std::string> drafter_names(const EngineConfig& config);

// The most drafts of any one, 0 without drafters; the most there can be where one is not told.
int max_draft_tokens(const EngineConfig& config);

// Rows of the largest catch-up pass of a step: a whole step's rows, and the token that each
// sequence gets beyond them.
// BatchState::num_branches, and the blocks that each of those has: of its last known token and of
// as many drafts as there may be.
int num_branches(const EngineConfig& config);
int branch_blocks(const EngineConfig& config);

int max_catch_up_rows(const EngineConfig& config);

}  // namespace foretoken
