#include "draft/registry.h"

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>

#include "base/check.h"
#include "draft/config_check.h"
#include "draft/draft_model.h"
#include "draft/draft_vocab.h"
#include "draft/eagle.h"
#include "draft/eagle3.h"
#include "draft/method.h"
#include "draft/mtp.h"
#include "draft/ngram.h"

namespace foretoken {
namespace {

constexpr DrafterTraits kHead = {.reads_files = true, .needs_model = true, .has_kv = true};

constexpr DrafterEntry kDrafters[] = {
    {"ngram",
     "ngram_gpu [ngram]",
     "prompt lookup in the sequence's own tokens",
     {.looks_up = true, .proposes_unmasked = true, .one_pass = true},
     make_ngram_drafter},
    {"draft_model",
     "",
     "a smaller language model",
     {.reads_files = true,
      .needs_model = true,
      .maps_vocabulary = true,
      .has_kv = true,
      .keeps_written = true},
     make_draft_model_drafter},
    {"eagle", "", "EAGLE head on the target's last hidden states", kHead, make_eagle_drafter},
    {"eagle3", "", "EAGLE-3 head on hidden states of three target layers", kHead,
     make_eagle3_drafter},
    {"mtp",
     "deepseek_mtp ernie_mtp exaone_moe_mtp glm4_moe_mtp longcat_flash_mtp mimo_mtp nemotron_h_mtp "
     "pangu_ultra_moe_mtp qwen3_next_mtp qwen3_5_mtp",
     "the target's own multi-token prediction modules",
     {.reads_files = true, .counts_itself = true, .has_kv = true},
     make_mtp_drafter},
};

bool names(const DrafterEntry& entry, const std::string& method) {
  if (method == entry.name) return true;
  std::istringstream aliases(entry.aliases);
  for (std::string alias; aliases >> alias;) {
    if (alias == method) return true;
  }
  return false;
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
  const std::string held = guess.method == "draft_model" ? "a language model"
                           : guess.method == "mtp"       ? "MTP modules"
                           : guess.method == "eagle"     ? "an EAGLE head"
                                                         : "an EAGLE-3 head";
  return invalid_argument("speculative config: " + context.folder + " holds " + held +
                          ", not what method " + entry.name + " reads; set method to " +
                          guess.method + " or `model` to another folder");
}

}  // namespace

std::span<const DrafterEntry> drafters() { return kDrafters; }

Result<const DrafterEntry*> find_drafter(const std::string& method) {
  std::string known;
  for (const DrafterEntry& entry : kDrafters) {
    if (names(entry, method)) return &entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return unsupported("speculative config: method '" + method +
                     "' is not available; use one of: " + known);
}

DrafterTraits declared_traits(const std::string& name) {
  const Result<const DrafterEntry*> entry = find_drafter(name);
  FT_CHECK_MSG(entry.ok(), "a drafter without a row");
  return entry.value()->traits;
}

Result<const DrafterEntry*> choose_drafter(const SpeculativeConfig& config,
                                           const std::string& folder) {
  if (!config.method.empty()) return find_drafter(config.method);
  if (config.model.empty()) {
    return invalid_argument(
        "speculative config: it names neither a method nor a model; add method, for example ngram");
  }
  const MethodGuess of_name = method_of_name(config.model);
  if (of_name.certain) return find_drafter(of_name.method);
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
          choose_draft_vocab(context.config, target.vocab_size, target.eos_token_ids));
    }
  }
  return entry->make(complete);
}

}  // namespace foretoken
