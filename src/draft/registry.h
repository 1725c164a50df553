#pragma once
#include <foretoken/config.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "base/result.h"
#include "device/device.h"
#include "draft/look_up_drafter.h"
#include "draft/parts/drafter.h"
#include "draft/parts/method_fields.h"
#include "gguf/gguf_recipe.h"
#include "model/draft_head_config.h"
#include "model/files/quantization_choice.h"
#include "model/heads/chain_head.h"
#include "model/model.h"

namespace foretoken {

// What a drafter is made from. References live as long as the drafter.
struct DrafterContext {
  const SpeculativeConfig& config;
  Device& device;
  Model& target;
  std::string target_folder;
  std::string folder;  // of config.model, fetched; the target's where `model` is empty
  const AttentionBackend* attention = nullptr;
  int max_model_len = 0;
  int max_rows = 0;                          // of the largest catch-up pass
  int max_spans = 0;                         // sequences a step, and branches of them
  bool dummy = false;                        // random weights
  const GgufRecipe* dummy_recipe = nullptr;  // by which a draft model's are quantised, or null
  KvFormat kv_format = KvFormat::kPlain;     // of the drafter's own KV
  WeightRounding rounding = WeightRounding::kNone;  // of the target, which its MTP modules follow
  // Of the drafter's own files, where its `quantization` says so.
  WeightRounding own_rounding = WeightRounding::kNone;
  bool with_grammars = false;  // steps may hold grammars, under whose masks drafts are made
  // Where the draft model has another vocabulary (engine/start/token_map.h); empty: the same ids.
  std::vector<int32_t> token_map;       // target id to a draft id, never negative
  std::vector<int32_t> token_map_back;  // draft id to the equal target id, -1: there is none
  // Target ids of the reduced draft vocabulary, ascending; empty: all.
  std::vector<int32_t> draft_vocab_ids;
  Sharding sharding = {};  // of the drafter's own weights
  bool is_absent = false;  // this rank never drafts: only the traits are wanted (absent_drafter.h)
};

// All that the engine and its commands know of a method.
struct DrafterEntry {
  const char* name;
  const char* aliases;  // separated by spaces; "*_x": every name that ends with "_x"
  const char* description;
  const char* files = "";    // what its files are, "an EAGLE head"; empty: it reads none
  const char* bundled = "";  // ending of a bundled one's folder; empty: the name
  const char* at_once = "";  // the method that drafts likewise but all at once; empty: none does
  // The method by whose name others know it, which its files then tell from that; empty: none.
  const char* otherwise = "";
  DrafterTraits traits{};
  std::span<const MethodField> fields{};  // that it alone reads
  // Judges its fields; null: nothing can be wrong with them.
  Status (*check)(const SpeculativeConfig& config) = nullptr;
  // What makes it is one of four. A look-up that keeps nothing, which draft/look_up_drafter.h runs:
  // the op that proposes, with the numbers of a configuration.
  Result<LookUp> (*look_up)(const SpeculativeConfig& config) = nullptr;
  // A drafter with code of its own.
  Result<std::unique_ptr<Drafter>> (*make)(const DrafterContext& context) = nullptr;
  // A head of layers that attend: how its files are laid out, and draft/head_drafter.h, which
  // drafts from pass to pass, or draft/block_drafter.h.
  std::optional<HeadKind> head{};
  Result<std::unique_ptr<Drafter>> (*make_head)(const DrafterContext& context, HeadKind kind,
                                                const char* name) = nullptr;
  // A head without keys and values of its own, which draft/chain_drafter.h runs.
  Result<ChainFiles> (*read_chain)(const std::string& folder, const ModelConfig& target) = nullptr;
  // The id of the mask behind which a language model drafts, where its folder names one; null: it
  // needs none.
  std::optional<int32_t> (*mask_id)(const std::string& folder) = nullptr;

  // Its files are a language model as any other.
  bool reads_model() const { return traits.reads_files && !head && read_chain == nullptr; }
  // Its files may be within those of its target.
  bool may_be_targets() const { return traits.reads_files && !traits.needs_model; }
};

// A method of vLLM or of its relatives that is no drafter of this build.
struct UnbuiltDrafter {
  const char* name;
  const char* reason;       // "is not built yet"
  const char* fields = "";  // that it alone reads, separated by spaces
};

// All drafters of this build, in the order in which they are shown.
std::span<const DrafterEntry> drafters();
std::span<const UnbuiltDrafter> unbuilt_drafters();

// Names of the drafters for which `is_so` holds, " or " between them.
std::string drafters_that(bool (*is_so)(const DrafterEntry&));

// Names of all drafters, ", " between them.
std::string list_of_drafters();

// The entry with this name or alias. Unsupported, with the reason where it is known and with the
// list of what exists, otherwise.
Result<const DrafterEntry*> find_drafter(const std::string& method);

// What the row of a drafter with this name says, for the drafter itself to complete.
DrafterTraits declared_traits(const std::string& name);

// The first row that looks drafts up, which any model may have, as it needs no files.
const DrafterEntry& first_look_up();

// The entry that a configuration means: by its method, or where that is empty by its model: by what
// the files of `folder` say (draft/parts/method.h), or without a folder by the model's name alone.
// InvalidArgument when it names neither.
Result<const DrafterEntry*> choose_drafter(const SpeculativeConfig& config,
                                           const std::string& folder);

// Checks `config` as a whole and makes the drafter. Without a number of drafts an MTP drafter takes
// as many as it has modules; the traits tell how many there are.
Result<std::unique_ptr<Drafter>> make_drafter(const DrafterContext& context);

}  // namespace foretoken
