#include "draft/registry.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

#include "base/check.h"
#include "draft/block_drafter.h"
#include "draft/chain_drafter.h"
#include "draft/config_check.h"
#include "draft/draft_model.h"
#include "draft/dspark.h"
#include "draft/head_drafter.h"
#include "draft/ngram.h"
#include "draft/pard.h"
#include "draft/parts/draft_vocab.h"
#include "draft/parts/method.h"
#include "draft/suffix.h"
#include "model/heads/assistant_head.h"
#include "model/heads/medusa_head.h"
#include "model/heads/mlp_speculator.h"

namespace foretoken {
namespace {

constexpr DrafterTraits kChain = {.reads_files = true, .needs_model = true, .counts_itself = true};

// Heads that draft all at once, each draft with a look at those before.
constexpr DrafterTraits kBlock = {.reads_files = true,
                                  .needs_model = true,
                                  .counts_itself = true,
                                  .proposes_unmasked = true,
                                  .drafts_at_once = true,
                                  .has_kv = true};

// The same without that look.
constexpr DrafterTraits kApart = {.reads_files = true,
                                  .needs_model = true,
                                  .counts_itself = true,
                                  .proposes_unmasked = true,
                                  .drafts_at_once = true,
                                  .drafts_apart = true,
                                  .has_kv = true};

constexpr MethodField kNgramFields[] = {
    {.name = "prompt_lookup_min", .member = &SpeculativeConfig::prompt_lookup_min},
    {.name = "prompt_lookup_max", .member = &SpeculativeConfig::prompt_lookup_max}};

constexpr MethodField kSuffixFields[] = {
    {.name = "suffix_decoding_max_tree_depth"},
    {.name = "suffix_decoding_max_cached_requests"},
    {.name = "suffix_decoding_max_spec_factor", .is_whole = false},
    {.name = "suffix_decoding_min_token_prob", .is_whole = false}};

constexpr MethodField kDsparkFields[] = {{.name = "confidence_threshold", .is_whole = false}};

constexpr DrafterEntry kDrafters[] = {
    {.name = "ngram",
     .aliases = "ngram_gpu [ngram]",
     .description = "prompt lookup in the sequence's own tokens",
     .traits = {.looks_up = true, .proposes_unmasked = true, .one_pass = true},
     .fields = kNgramFields,
     .check = check_ngram_fields,
     .look_up = ngram_look_up},
    {.name = "draft_model",
     .aliases = "",
     .description = "a smaller language model",
     .files = "a language model",
     .bundled = "draft",
     .at_once = "pard",
     .traits = {.reads_files = true,
                .needs_model = true,
                .maps_vocabulary = true,
                .has_kv = true,
                .keeps_written = true,
                .branches = true},
     .make = make_draft_model_drafter},
    {.name = "eagle",
     .aliases = "",
     .description = "EAGLE head on the target's last hidden states",
     .files = "an EAGLE head",
     .traits = {.reads_files = true, .needs_model = true, .has_kv = true, .branches = true},
     .head = HeadKind::kEagle,
     .make_head = make_head_drafter},
    {.name = "eagle3",
     .aliases = "",
     .description = "EAGLE-3 head on hidden states of three target layers",
     .files = "an EAGLE-3 head",
     .at_once = "p_eagle",
     .traits = {.reads_files = true,
                .needs_model = true,
                .counts_itself = true,
                .has_kv = true,
                .branches = true},
     .head = HeadKind::kEagle3,
     .make_head = make_head_drafter},
    {.name = "mtp",
     .aliases = "*_mtp",
     .description = "the target's own multi-token prediction modules",
     .files = "MTP modules",
     .traits = {.reads_files = true,
                .drafts_by_modules = true,
                .counts_itself = true,
                .has_kv = true,
                .branches = true},
     .head = HeadKind::kMtp,
     .make_head = make_head_drafter},
    {.name = "dflash",
     .aliases = "",
     .description = "block diffusion on hidden states of several target layers",
     .files = "a DFlash head",
     .traits = kApart,
     .head = HeadKind::kDflash,
     .make_head = make_block_drafter},
    {.name = "dspark",
     .aliases = "",
     .description = "the same, each draft with a look at the one before",
     .files = "a DSpark head",
     .traits = kBlock,
     .fields = kDsparkFields,
     .check = check_dspark_fields,
     .head = HeadKind::kDspark,
     .make_head = make_block_drafter},
    {.name = "domino",
     .aliases = "",
     .description = "the same, each draft with a look at all before",
     .files = "a Domino head",
     .traits = kBlock,
     .head = HeadKind::kDomino,
     .make_head = make_block_drafter},
    {.name = "pard",
     .aliases = "",
     .description = "a smaller language model that drafts behind mask tokens, all at once",
     .files = "a language model",
     .traits = {.reads_files = true,
                .needs_model = true,
                .maps_vocabulary = true,
                .proposes_unmasked = true,
                .drafts_at_once = true,
                .drafts_apart = true,
                .has_kv = true},
     .make = make_pard_drafter,
     .mask_id = pard_mask_id},
    {.name = "suffix",
     .aliases = "",
     .description = "lookup in the sequence's own tokens and in past answers",
     .traits = {.counts_itself = true,
                .looks_up = true,
                .proposes_unmasked = true,
                .learns = true,
                .one_pass = true},
     .fields = kSuffixFields,
     .check = check_suffix_fields,
     .make = make_suffix_drafter},
    {.name = "p_eagle",
     .aliases = "peagle",
     .description = "EAGLE-3 head that drafts behind mask tokens, all at once",
     .files = "a P-EAGLE head",
     .traits = kApart,
     .head = HeadKind::kPeagle,
     .make_head = make_head_drafter},
    {.name = "medusa",
     .aliases = "",
     .description = "heads on the target's last hidden state, one for each draft",
     .files = "Medusa heads",
     .traits = kChain,
     .read_chain = read_medusa_files},
    {.name = "mlp_speculator",
     .aliases = "",
     .description = "an MLP over the target's last hidden state and the drafts before",
     .files = "an MLP speculator",
     .traits = kChain,
     .read_chain = read_mlp_speculator_files},
    {.name = "gemma4_assistant",
     .aliases = "gemma4_mtp gemma4_unified_assistant",
     .description =
         "Gemma 4's assistants: small layers that attend to the target's keys and values",
     .files = "an assistant",
     .otherwise = "mtp",
     .traits = {.reads_files = true, .needs_model = true, .reads_target_kv = true},
     .read_chain = read_assistant_files},
};

constexpr const char* kNotYet = "is not built yet";
constexpr UnbuiltDrafter kUnbuilt[] = {
    {"xpress", kNotYet, "xpress_topc"},
    {"extract_hidden_states", "drafts nothing and is not built"},
    {"custom_class", "loads Python code, which this engine has none of"},
};

// Whether the method is the entry's name or alias, or ends as one of its endings does.
bool names(const DrafterEntry& entry, const std::string& method, bool by_ending) {
  if (method == entry.name) return true;
  std::istringstream aliases(entry.aliases);
  for (std::string alias; aliases >> alias;) {
    const bool is_ending = alias.front() == '*';
    if (is_ending != by_ending) continue;
    if (is_ending ? method.ends_with(alias.substr(1)) : method == alias) return true;
  }
  return false;
}

// What the files of `folder` are for, where others call that as `entry` is called here.
const DrafterEntry& by_files(const DrafterEntry& entry, const std::string& folder) {
  for (const DrafterEntry& other : kDrafters) {
    if (std::string(other.otherwise) != entry.name) continue;
    const MethodGuess guess = method_of_files(folder);
    if (guess.certain && guess.method == other.name) return other;
  }
  return entry;
}

// The folder must hold what the method reads, as far as the files tell.
Status check_folder(const DrafterEntry& entry, const DrafterContext& context) {
  std::error_code error;
  if (!std::filesystem::exists(context.folder, error)) {
    return not_found("speculative config: " + context.folder +
                     ", the folder or GGUF file of the drafter, does not exist; set `model` to one "
                     "that does");
  }
  const MethodGuess guess = method_of_files(context.folder);
  if (!guess.certain || guess.method == entry.name) return {};
  FT_ASSIGN_OR_RETURN(const DrafterEntry* held, find_drafter(guess.method));
  if (std::string(held->files) == entry.files) return {};
  if (context.config.model.empty()) {
    return invalid_argument("speculative config: the model's own files, " + context.folder +
                            ", hold no " + entry.files + " for method " + entry.name +
                            "; choose another method, or set `model` to a folder that holds some");
  }
  return invalid_argument("speculative config: " + context.folder + " holds " + held->files +
                          ", not what method " + entry.name + " reads; set method to " +
                          guess.method + " or `model` to another folder");
}

Result<std::unique_ptr<Drafter>> make_by_row(const DrafterEntry& entry,
                                             const DrafterContext& context) {
  if (entry.look_up != nullptr) {
    FT_ASSIGN_OR_RETURN(LookUp look_up, entry.look_up(context.config));
    return make_look_up_drafter(context, entry.name, std::move(look_up));
  }
  if (entry.make != nullptr) return entry.make(context);
  if (entry.make_head != nullptr) return entry.make_head(context, *entry.head, entry.name);
  FT_ASSIGN_OR_RETURN(const ChainFiles files,
                      entry.read_chain(context.folder, context.target.config()));
  return make_chain_drafter(context, entry.name, files);
}

}  // namespace

std::span<const DrafterEntry> drafters() { return kDrafters; }

std::span<const UnbuiltDrafter> unbuilt_drafters() { return kUnbuilt; }

std::string drafters_that(bool (*is_so)(const DrafterEntry&)) {
  std::string names;
  for (const DrafterEntry& entry : kDrafters) {
    if (is_so(entry)) names += (names.empty() ? "" : " or ") + std::string(entry.name);
  }
  return names;
}

std::string list_of_drafters() {
  std::string all;
  for (const DrafterEntry& entry : kDrafters) {
    all += (all.empty() ? "" : ", ") + std::string(entry.name);
  }
  return all;
}

Result<const DrafterEntry*> find_drafter(const std::string& method) {
  for (const bool by_ending : {false, true}) {
    for (const DrafterEntry& entry : kDrafters) {
      if (names(entry, method, by_ending)) return &entry;
    }
  }
  std::string reason = "is not available";
  for (const UnbuiltDrafter& unbuilt : kUnbuilt) {
    if (method == unbuilt.name) reason = unbuilt.reason;
  }
  return unsupported("speculative config: method '" + method + "' " + reason +
                     "; use one of: " + list_of_drafters());
}

const DrafterEntry& first_look_up() {
  return *std::find_if(std::begin(kDrafters), std::end(kDrafters),
                       [](const DrafterEntry& entry) { return entry.traits.looks_up; });
}

DrafterTraits declared_traits(const std::string& name) {
  const Result<const DrafterEntry*> entry = find_drafter(name);
  FT_CHECK_MSG(entry.ok(), "a drafter without a row");
  return entry.value()->traits;
}

Result<const DrafterEntry*> choose_drafter(const SpeculativeConfig& config,
                                           const std::string& folder) {
  if (!config.method.empty()) {
    FT_ASSIGN_OR_RETURN(const DrafterEntry* named, find_drafter(config.method));
    return &by_files(*named, folder);
  }
  if (config.model.empty()) {
    return invalid_argument(
        "speculative config: it names neither a method nor a model; add method, for example " +
        std::string(first_look_up().name));
  }
  if (const Result<const DrafterEntry*> named = find_drafter(config.model);
      named.ok() && !named.value()->traits.reads_files) {
    return named;
  }
  const MethodGuess of_name = method_of_name(config.model);
  const MethodGuess of_files = method_of_files(folder);
  return find_drafter(of_files.method.empty() ? of_name.method : of_files.method);
}

Result<std::unique_ptr<Drafter>> make_drafter(const DrafterContext& context) {
  FT_CHECK(context.max_rows > 0 && context.max_spans > 0 && context.max_model_len > 0);
  FT_ASSIGN_OR_RETURN(const DrafterEntry* entry, choose_drafter(context.config, context.folder));
  FT_RETURN_IF_ERROR(check_config(context.config, *entry));
  DrafterContext complete = context;
  if (entry->traits.reads_files) {
    if (complete.folder.empty() && !entry->traits.needs_model) {
      complete.folder = context.target_folder;
    }
    FT_RETURN_IF_ERROR(check_folder(*entry, complete));
    if (complete.draft_vocab_ids.empty()) {
      const ModelConfig& target = context.target.config();
      FT_ASSIGN_OR_RETURN(
          complete.draft_vocab_ids,
          choose_draft_vocab(context.config, target.own_ids(), target.eos_token_ids));
    }
  }
  return make_by_row(*entry, complete);
}

}  // namespace foretoken
