#include "engine/support/support_matrix.h"

#include <set>

#include "base/comma_list.h"
#include "compat/compat.h"
#include "compat/kv_format.h"
#include "draft/drafter_parts.h"
#include "draft/registry.h"
#include "engine/support/support_rows.h"

namespace foretoken {
namespace {

using Cells = std::vector<std::string>;

// A table, and behind it a sentence for each "no" that was said in it.
class MatrixTable {
 public:
  MatrixTable(const std::string& title, const Cells& header) : text_("### " + title + "\n\n") {
    add(header);
    text_ += "|";
    for (size_t i = 0; i < header.size(); ++i) text_ += "---|";
    text_ += "\n";
  }

  void add(const Cells& cells) {
    text_ += "|";
    for (const std::string& cell : cells) text_ += " " + cell + " |";
    text_ += "\n";
  }

  // "yes", or "no" with its sentence.
  std::string cell(const Status& status) {
    if (status.ok()) return "yes";
    const std::string line = "- " + status.message() + "\n";
    if (reasons_.find(line) == std::string::npos) reasons_ += line;
    return "no";
  }

  std::string text() const { return text_ + (reasons_.empty() ? "" : "\n" + reasons_) + "\n"; }

 private:
  std::string text_;
  std::string reasons_;
};

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

// One row for each backend and type of device.
std::string attention_table() {
  Cells header = {"attention", "device", "KV auto"};
  for (const NamedKvFormat& format : named_kv_formats())
    header.push_back("KV " + std::string(format.name));
  header.insert(header.end(), {"batch-invariant", "model"});
  MatrixTable table("Attention and the KV cache", header);
  for (const AttentionBackend* backend : attention_backends()) {
    const AttentionTraits& traits = backend->traits();
    for (const DeviceTraits& device : device_types()) {
      if (!traits.runs_on(device.type)) continue;
      const auto with = [&](const char* kv_cache_dtype) {
        return table.cell(compat({.device = &device,
                                  .attention = backend,
                                  .kv_cache_dtype = kv_cache_dtype,
                                  .dtype = DType::kBF16,
                                  .latent = traits.is_latent}));
      };
      Cells cells = {traits.name, device.name, with("auto")};
      for (const NamedKvFormat& format : named_kv_formats()) cells.push_back(with(format.name));
      cells.push_back(table.cell(compat({.attention = backend, .batch_invariant = true})));
      cells.push_back(backend->model_needs());
      table.add(cells);
    }
  }
  return table.text();
}

// Traits that the engine asks for, and what rules say of them.
std::string drafter_table() {
  MatrixTable table("Drafters", {"drafter", "`model`", "KV of its own", "drafts in one pass",
                                 "`prediction`", "before another in a list", "`quantization`",
                                 "`use_heterogeneous_vocab`", "structured outputs"});
  for (const DrafterEntry& entry : drafters()) {
    const DrafterTraits& traits = entry.traits;
    const auto goes_with = [&](auto change) {
      Combination c;
      add_drafter({}, entry, &c);
      change(c);
      return yes_or_no(compat(c).ok());
    };
    table.add({entry.name,
               !traits.reads_files  ? "none"
               : traits.needs_model ? "needed"
                                    : "or the target's folder",
               yes_or_no(traits.has_kv), yes_or_no(traits.drafts_at_once),
               yes_or_no(traits.looks_up),
               goes_with([](Combination& c) { c.drafter_behind = "another"; }),
               traits.reads_files ? "yes" : "no weights",
               goes_with([](Combination& c) { c.other_vocabulary = true; }),
               traits.proposes_unmasked ? "drafts are repaired (one rank)" : "drafts are masked"});
  }
  return table.text();
}

std::string ranks_table() {
  MatrixTable table("Ranks",
                    {"", "one rank", "TP or PP", "DP", "DP with PP", "DP on several hosts"});
  const auto row = [&](const std::string& name, Combination c) {
    if (!c.expert_parallel.is_known()) c.expert_parallel = false;
    c.num_ranks = c.num_stages = c.num_engines = c.num_hosts = 1;
    Cells cells = {name, table.cell(compat(c))};
    c.num_ranks = 2;
    cells.push_back(table.cell(compat(c)));
    c.num_ranks = 1;
    c.num_engines = 2;
    cells.push_back(table.cell(compat(c)));
    Combination stages = c;
    stages.num_ranks = stages.num_stages = 2;
    cells.push_back(table.cell(compat(stages)));
    c.num_hosts = 2;
    cells.push_back(table.cell(compat(c)));
    table.add(cells);
  };
  for (const DeviceTraits& device : device_types()) {
    row("on " + std::string(device.title), {.device = &device});
    row("on " + std::string(device.title) + ", `--communicator mpi`",
        {.device = &device, .uses_mpi = true});
    row("on " + std::string(device.title) + ", `--enable-expert-parallel`",
        {.device = &device, .expert_parallel = true});
  }
  row("`--enable-dbo`", {.two_lanes = true});
  row("structured outputs", {.structured_outputs = true});
  row("logits processors", {.logits_processors = true});
  return table.text();
}

// What a model's layers are, beside what blocks and layouts they may have.
std::string layers_table() {
  MatrixTable table("Layers", {"", "TP", "PP", "DCP", "TP with `--enable-dbo`",
                               "`--kv-offloading-size`", "`--flex-mask` with `prompt`",
                               "DP with `--enable-expert-parallel`", "MTP modules"});
  const auto row = [&](const std::string& name, const Combination& layers) {
    Cells cells = {name};
    const auto with = [&](auto change) {
      Combination c = layers;
      c.architecture = c.files = "the model";
      change(c);
      cells.push_back(table.cell(compat(c)));
    };
    with([](Combination& c) { c.num_ranks = 2; });
    with([](Combination& c) { c.num_ranks = c.num_stages = 2; });
    with([](Combination& c) { c.num_ranks = c.num_context_ranks = 2; });
    with([](Combination& c) {
      c.num_ranks = 2;
      c.two_lanes = true;
    });
    with([](Combination& c) { c.host_blocks = true; });
    with([](Combination& c) { c.expressions = c.whole_prompts = true; });
    with([](Combination& c) {
      c.num_engines = 2;
      c.expert_parallel = true;
    });
    with([](Combination& c) { c.drafts_by_modules = true; });
    table.add(cells);
  };
  row("all others", {});
  row("sliding windows", {.has_windows = true});
  row("compressed entries", {.compressed = true});
  row("blocks that an indexer chooses", {.chooses_blocks = true});
  row("a head of keys and values for each rank", {.kv_heads = {2}});
  row("an odd hidden size", {.hidden_size = 65});
  // Every need of layers that a rule goes by.
  std::set<std::string> needs;
  for (const CompatRule& rule : compat_rules()) {
    if (!rule.example.layers) continue;
    const std::string name = rule.parts.substr(0, rule.parts.find(", `"));
    if (needs.insert(name).second) row(name, {.layers = rule.example.layers});
  }
  return table.text();
}

// Every rule by an example that breaks it.
std::string rules_table() {
  MatrixTable table("All rules", {"does not go together", "for example"});
  for (const CompatRule& rule : compat_rules()) {
    table.add({rule.parts, compat(rule.example).message()});
  }
  return table.text();
}

std::string layout_name(const SupportRow& row) {
  if (row.tp == 1 && row.dp == 1) return "one rank";
  const auto part = [](const char* name, int size) {
    return size > 1 ? name + std::to_string(size) : std::string();
  };
  return part("TP", row.tp) + part("DP", row.dp) + part(" DCP", row.context_ranks) +
         (row.experts ? " with experts" : "") + (row.two_lanes ? " with two lanes" : "");
}

std::string rows_table() {
  MatrixTable table("Rows of vLLM's list", {"row", "model", "drafter", "layout", "KV cache",
                                            "graphs", "attention", "device", "here"});
  for (const SupportRow& row : support_rows()) {
    table.add({std::to_string(row.number), row.architecture,
               row.drafter.empty() ? "none" : row.drafter, layout_name(row), row.kv_cache_dtype,
               comma_list(row.graph_modes), row.attention, row.device,
               table.cell(check_support_row(row))});
  }
  return table.text();
}

}  // namespace

std::string support_matrix() {
  return attention_table() + drafter_table() + ranks_table() + layers_table() + rows_table() +
         rules_table();
}

}  // namespace foretoken
