#include "bench_run.h"

#include <fstream>

#include "interrupt.h"
#include "report.h"
#include "request_batch.h"

namespace foretoken {

void add_stats(const RequestStats& from, RequestStats* sum) {
  sum->num_prompt_tokens += from.num_prompt_tokens;
  sum->num_cached_tokens += from.num_cached_tokens;
  sum->num_output_tokens += from.num_output_tokens;
  sum->num_steps += from.num_steps;
  sum->num_drafts += from.num_drafts;
  sum->num_draft_tokens += from.num_draft_tokens;
  sum->num_accepted_tokens += from.num_accepted_tokens;
}

Result<BenchRun> run_bench_requests(Engine& engine, const std::vector<Request>& requests,
                                    const std::function<void(size_t num_done)>& on_progress) {
  RequestBatch batch(engine, requests.size());
  for (size_t i = 0; i < requests.size(); ++i) batch.submit(i, requests[i]);
  BenchRun run;
  Status status;
  for (bool done = false; !done;) {
    size_t num_done = 0;
    done = batch.look([&](const std::vector<OutputSum>& outputs) {
      for (const OutputSum& output : outputs) num_done += output.finished() ? 1 : 0;
      if (num_done < outputs.size()) return;
      for (const OutputSum& output : outputs) {
        if (status.ok()) status = output.status();
        add_stats(output.stats(), &run.stats);
      }
    });
    if (interrupt_flag().load()) return aborted("interrupted");
    if (on_progress) on_progress(num_done);
  }
  FT_RETURN_IF_ERROR(status);
  run.seconds = batch.seconds();
  return run;
}

nlohmann::ordered_json drafts_json(const RequestStats& stats) {
  return {{"steps", stats.num_steps},
          {"drafts", stats.num_drafts},
          {"drafted_tokens", stats.num_draft_tokens},
          {"accepted_tokens", stats.num_accepted_tokens},
          {"output_tokens", stats.num_output_tokens},
          {"acceptance_rate", acceptance_rate(stats)},
          {"mean_acceptance_length", mean_acceptance_length(stats)}};
}

Status write_bench_json(const nlohmann::ordered_json& object, const std::string& path) {
  std::ofstream file(path);
  file << object.dump(4) << "\n";
  file.flush();
  if (file) return {};
  return invalid_argument("cannot write --output-json '" + path + "'");
}

int bench_exit_code(const Status& status) {
  if (interrupt_flag().load()) return report_interrupt("the benchmark");
  if (status.ok()) return 0;
  report_error(status.message());
  return kExitError;
}

}  // namespace foretoken
