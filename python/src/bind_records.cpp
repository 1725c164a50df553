#include "bind_records.h"

#include <foretoken/engine.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "config/engine_names.h"
#include "output_inbox.h"

namespace foretoken::python {
namespace {

namespace nb = nanobind;

// Token id, log-probability, rank, text.
using LogprobEntry = std::tuple<int32_t, float, int, std::string>;

LogprobEntry entry_of(const Logprob& logprob) {
  return {logprob.token_id, logprob.logprob, logprob.rank, logprob.decoded_token};
}

// The token of each position first, then the likeliest ones.
std::vector<std::vector<LogprobEntry>> entries_of(const std::vector<TokenLogprobs>& positions) {
  std::vector<std::vector<LogprobEntry>> rows;
  for (const TokenLogprobs& position : positions) {
    std::vector<LogprobEntry>& row = rows.emplace_back();
    row.push_back(entry_of(position.token));
    for (const Logprob& top : position.top) row.push_back(entry_of(top));
  }
  return rows;
}

void bind_updates(nb::module_& module) {
  using Choice = RequestOutput;
  nb::class_<Choice>(module, "ChoiceUpdate", "What is new about one choice.")
      .def_ro("index", &Choice::index)
      .def_ro("text", &Choice::text)
      .def_ro("token_ids", &Choice::token_ids)
      .def_ro("num_accepted_tokens", &Choice::num_accepted_tokens)
      .def_prop_ro("logprobs", [](const Choice& choice) { return entries_of(choice.logprobs); })
      .def_prop_ro("prompt_logprobs",
                   [](const Choice& choice) { return entries_of(choice.prompt_logprobs); })
      .def_ro("embedding", &Choice::embedding)
      .def_prop_ro("finish_reason",
                   [](const Choice& choice) { return finish_reason_name(choice.finish_reason); })
      .def_ro("stop_reason", &Choice::stop_reason)
      .def_prop_ro("error",
                   [](const Choice& choice) { return with_field_names(choice.status.message()); })
      .def_ro("stats", &Choice::stats);
  nb::class_<Update>(module, "Update", "What is new about one request.")
      .def_ro("key", &Update::key)
      .def_ro("choices", &Update::choices)
      .def_ro("finished", &Update::finished);
}

void bind_stats(nb::module_& module) {
  using Stats = RequestStats;
  nb::class_<Stats>(module, "Stats", "Counts of one choice, or sums of many.")
      .def_ro("num_prompt_tokens", &Stats::num_prompt_tokens)
      .def_ro("num_cached_tokens", &Stats::num_cached_tokens)
      .def_ro("num_output_tokens", &Stats::num_output_tokens)
      .def_ro("num_steps", &Stats::num_steps)
      .def_ro("num_drafts", &Stats::num_drafts)
      .def_ro("num_draft_tokens", &Stats::num_draft_tokens)
      .def_ro("num_accepted_tokens", &Stats::num_accepted_tokens)
      .def_ro("num_accepted_tokens_per_pos", &Stats::num_accepted_tokens_per_pos)
      .def_ro("num_preemptions", &Stats::num_preemptions)
      .def_prop_ro("queue_seconds",
                   [](const Stats& stats) { return static_cast<double>(stats.queue_ns) / 1e9; });
  nb::class_<EngineStats>(module, "EngineStats", "Counters since the start, and what is so now.")
      .def_ro("num_steps", &EngineStats::num_steps)
      .def_ro("num_finished_requests", &EngineStats::num_finished_requests)
      .def_ro("requests", &EngineStats::requests)
      .def_ro("num_running_requests", &EngineStats::num_running_requests)
      .def_ro("num_waiting_requests", &EngineStats::num_waiting_requests)
      .def_ro("num_free_blocks", &EngineStats::num_free_blocks)
      .def_ro("num_total_blocks", &EngineStats::num_total_blocks)
      .def_prop_ro("num_offload_queried_tokens",
                   [](const EngineStats& stats) { return stats.offload.num_queried_tokens; })
      .def_prop_ro("num_offload_hit_tokens",
                   [](const EngineStats& stats) { return stats.offload.num_hit_tokens; });
}

void bind_info(nb::module_& module) {
  nb::class_<EngineInfo>(module, "EngineInfo", "What the start-up decided.")
      .def_ro("device", &EngineInfo::device)
      .def_ro("architecture", &EngineInfo::architecture)
      .def_ro("dtype", &EngineInfo::dtype)
      .def_ro("attention_backend", &EngineInfo::attention_backend)
      .def_prop_ro("drafters",
                   [](const EngineInfo& info) {
                     std::vector<std::tuple<std::string, int>> drafters;
                     for (const DrafterInfo& drafter : info.drafters) {
                       drafters.emplace_back(drafter.name, drafter.num_speculative_tokens);
                     }
                     return drafters;
                   })
      .def_ro("batch_invariant", &EngineInfo::batch_invariant)
      .def_ro("num_parameters", &EngineInfo::num_parameters)
      .def_ro("vocab_size", &EngineInfo::vocab_size)
      .def_ro("max_model_len", &EngineInfo::max_model_len)
      .def_ro("max_num_seqs", &EngineInfo::max_num_seqs)
      .def_ro("max_num_batched_tokens", &EngineInfo::max_num_batched_tokens)
      .def_ro("block_size", &EngineInfo::block_size)
      .def_ro("num_blocks", &EngineInfo::num_blocks)
      .def_ro("kv_cache_bytes", &EngineInfo::kv_cache_bytes)
      .def_ro("load_seconds", &EngineInfo::load_seconds);
}

}  // namespace

void bind_records(nb::module_& module) {
  bind_stats(module);
  bind_updates(module);
  bind_info(module);
}

}  // namespace foretoken::python
