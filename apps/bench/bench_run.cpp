#include "apps/bench/bench_run.h"

#include <spdlog/fmt/fmt.h>

#include <fstream>

#include "apps/flags/file_validators.h"
#include "apps/flags/flag_table.h"
#include "apps/generate/request_batch.h"
#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"

namespace foretoken {

namespace {

Result<BenchRun> sum_of(RequestBatch& batch) {
  BenchRun run;
  Status status;
  batch.look([&](const std::vector<OutputSum>& outputs) {
    for (const OutputSum& output : outputs) {
      if (status.ok()) status = output.status();
      run.stats += output.stats();
      std::vector<int32_t>& ids = run.token_ids.emplace_back();
      for (const RequestOutput& choice : output.choices()) {
        ids.insert(ids.end(), choice.token_ids.begin(), choice.token_ids.end());
      }
    }
  });
  FT_RETURN_IF_ERROR(status);
  run.seconds = batch.seconds();
  return run;
}

}  // namespace

Result<BenchRun> run_bench_requests(Engine& engine, const std::vector<Request>& requests,
                                    const std::function<void(size_t num_done)>& on_progress,
                                    size_t max_concurrency) {
  RequestBatch batch(engine, requests.size());
  size_t num_sent = 0;
  // False after a signal.
  const auto wait_until_open = [&](size_t most) {
    for (bool done = false; !done;) {
      done = batch.wait_until_open(most);
      if (on_progress) on_progress(num_sent - batch.num_open());
      if (interrupt_flag().load()) return false;
    }
    return true;
  };
  for (; num_sent < requests.size(); ++num_sent) {
    if (max_concurrency > 0 && num_sent >= max_concurrency &&
        !wait_until_open(max_concurrency - 1)) {
      return aborted("interrupted");
    }
    batch.submit(num_sent, requests[num_sent]);
  }
  if (!wait_until_open(0)) return aborted("interrupted");
  return sum_of(batch);
}

// What each drafter made, by name.
nlohmann::ordered_json drafters_json(const RequestStats& stats, const EngineInfo& info) {
  nlohmann::ordered_json drafters = nlohmann::ordered_json::object();
  for (size_t i = 0; i < info.drafters.size(); ++i) {
    drafters[info.drafters[i].name] = {
        {"drafted_tokens", stats.num_draft_tokens_by_drafter.at(i)},
        {"accepted_tokens", stats.num_accepted_tokens_by_drafter.at(i)}};
  }
  return drafters;
}

nlohmann::ordered_json drafts_json(const RequestStats& stats, const EngineInfo& info) {
  return {{"drafter", info.drafter},
          {"rejection_sample_method", info.rejection_sample_method},
          {"steps", stats.num_steps},
          {"drafts", stats.num_drafts},
          {"drafted_tokens", stats.num_draft_tokens},
          {"accepted_tokens", stats.num_accepted_tokens},
          {"output_tokens", stats.num_output_tokens},
          {"acceptance_rate", acceptance_rate(stats)},
          {"mean_acceptance_length", mean_acceptance_length(stats)},
          {"drafted_by_position", position_counts(stats.num_draft_tokens_per_pos)},
          {"accepted_by_position", position_counts(stats.num_accepted_tokens_per_pos)},
          {"acceptance_by_position", position_rates(stats)},
          {"drafters", drafters_json(stats, info)}};
}

std::string bench_drafts_text(const RequestStats& stats, const EngineInfo& info) {
  std::string lines = acceptance_line(stats) + "\n" + draft_line(stats) + "\n";
  if (const std::string rates = position_rates_text(stats); !rates.empty()) {
    lines += "accepted by position: " + rates + "\n";
  }
  return lines + synthetic_note(info);
}

Status check_bench_lengths(int input_len, int output_len, const EngineInfo& info) {
  if (int64_t{input_len} + output_len <= info.max_model_len) return {};
  return invalid_argument(
      fmt::format("--input-len {} and --output-len {} exceed max_model_len {}; lower them",
                  input_len, output_len, info.max_model_len));
}

Status check_bench_batch(int batch_size, const EngineInfo& info) {
  if (batch_size <= info.max_num_seqs) return {};
  return invalid_argument(
      fmt::format("--batch-size {} exceeds max_num_seqs {}; raise --max-num-seqs", batch_size,
                  info.max_num_seqs));
}

void add_output_json(CLI::App& command, std::string& file) {
  command.add_option("--output-json", file, "File for the results")
      ->type_name(kFileType)
      ->check(file_in_a_folder());
}

Status write_bench_json(const nlohmann::ordered_json& object, const std::string& path) {
  return write_bench_text(object.dump(4) + "\n", path, "--output-json");
}

Status write_bench_text(const std::string& text, const std::string& path, const char* flag) {
  std::ofstream file(path);
  file << text;
  file.flush();
  if (file) return {};
  return invalid_argument(std::string(flag) + " '" + path +
                          "' cannot be written; name another file, or free space");
}

int bench_exit_code(const Status& status) {
  if (interrupt_flag().load()) return report_interrupt("the benchmark");
  if (status.ok()) return 0;
  report_error(status.message());
  return kExitError;
}

}  // namespace foretoken
