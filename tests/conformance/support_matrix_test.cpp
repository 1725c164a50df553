#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "attention/backend.h"
#include "conformance/layouts.h"
#include "device/resident_memory.h"
#include "engine/support/support_rows.h"
#include "support/claimed_device.h"

// Rows 1 to 13, 22 and 23 of the support matrix (docs/support-matrix.md) on a dialled checkpoint of
// Llama's architecture.

namespace foretoken {
namespace {

constexpr int kMatrixTokens = 40;
constexpr int kMatrixDrafts = 3;

// A row that is built, of the architecture of the dialled checkpoint.
struct MatrixRow : SupportRow {
  Layout layout() const { return {.tp = tp, .dp = dp, .dbo = two_lanes}; }
};

void PrintTo(const MatrixRow& row, std::ostream* out) { *out << "row " << row.number; }

std::vector<MatrixRow> matrix_rows() {
  std::vector<MatrixRow> rows;
  for (const SupportRow& row : support_rows()) {
    const bool is_dialled = row.architecture == SupportRow().architecture;
    if (is_dialled && check_support_row(row).ok()) rows.push_back({row});
  }
  return rows;
}

// The named backend where it gives the same ids in every batch, otherwise the one that does.
std::string attention_of(const MatrixRow& row) {
  const test::ClaimedDevice device(
      test_device_name() == "cpu" ? DeviceType::kCpu : DeviceType::kCuda, false);
  return find_attention_backend(row.attention, device).ok() ? row.attention : "auto";
}

// Without trimmed drafts and preemption, so that counts depend on nothing but the drafter.
EngineConfig config_of_row(const MatrixRow& row, const std::string& graph_mode,
                           int steps_in_flight) {
  EngineConfig config = config_of({.num_draft_tokens = row.drafter.empty() ? 0 : kMatrixDrafts,
                                   .drafter = row.drafter,
                                   .steps_in_flight = steps_in_flight,
                                   .max_batched_tokens = 2048,
                                   .graph_mode = graph_mode},
                                  test::DialledSet::of());
  config.attention_backend = attention_of(row);
  config.kv_cache_dtype = row.kv_cache_dtype;
  row.layout().apply(config);
  return config;
}

RunResult run_together(Engine& engine, const std::vector<Request>& requests) {
  RunResult result;
  for (const RequestOutput& output : engine.generate(requests)) {
    EXPECT_TRUE(output.status.ok()) << output.status.message();
    result.ids.push_back(output.token_ids);
    result.stats += output.stats;
  }
  expect_all_free(engine);
  return result;
}

// What one rank without drafts gives.
const RunResult& reference(const MatrixRow& row, const std::vector<Request>& requests) {
  static std::map<std::pair<std::string, size_t>, RunResult> known;
  RunResult& found = known[{row.kv_cache_dtype, requests.size()}];
  if (!found.ids.empty()) return found;
  MatrixRow plain;
  plain.kv_cache_dtype = row.kv_cache_dtype;
  const auto engine = start_engine(config_of_row(plain, "FULL", 1));
  if (engine != nullptr) found = run_together(*engine, requests);
  return found;
}

void print_run(const MatrixRow& row, const std::string& graph_mode, int steps_in_flight,
               const Engine& engine, const RunResult& run, int64_t grown_bytes) {
  std::cout << "device=" << test_device_name() << " row " << row.number << " "
            << (row.drafter.empty() ? "none" : row.drafter) << ", " << row.layout().name() << ", "
            << graph_mode << ", " << engine.info().attention_backend << " for " << row.attention
            << ", in flight " << steps_in_flight << ": " << run.ids.size() << " prompts, drafted "
            << run.stats.num_draft_tokens << ", accepted " << run.stats.num_accepted_tokens
            << "; repeated, resident +" << (grown_bytes >> 10) << " KiB" << std::endl;
}

// All prompts at once, twice. Returns what the first run gave.
RunResult expect_row(const MatrixRow& row, const std::string& graph_mode, int steps_in_flight,
                     const std::vector<Request>& requests) {
  const RunResult& base = reference(row, requests);
  const auto engine = start_engine(config_of_row(row, graph_mode, steps_in_flight));
  if (engine == nullptr) return {};
  const RunResult first = run_together(*engine, requests);
  const int64_t resident = resident_bytes();
  const RunResult second = run_together(*engine, requests);
  const int64_t grown = resident_bytes() - resident;
  print_run(row, graph_mode, steps_in_flight, *engine, first, grown);
  EXPECT_EQ(count_differences(base, first, graph_mode), 0);
  EXPECT_EQ(count_differences(base, second, "repeated"), 0);
  EXPECT_EQ(second.stats.num_draft_tokens, first.stats.num_draft_tokens);
  EXPECT_EQ(second.stats.num_accepted_tokens, first.stats.num_accepted_tokens);
  // Row 8 of the source ran out of memory between 10 and 1,000 prompts.
  if (requests.size() >= 1000) {
    EXPECT_LT(grown, int64_t{16} << 20);
  }
  return first;
}

void expect_green(const MatrixRow& row, int count) {
  const std::vector<Request> requests =
      dialled_requests(test::DialledSet::of(), row.drafter, count, kMatrixTokens);
  std::vector<RunResult> runs;
  for (const std::string& graph_mode : row.graph_modes) {
    for (const int steps_in_flight : {1, 2}) {
      runs.push_back(expect_row(row, graph_mode, steps_in_flight, requests));
    }
  }
  for (const RunResult& run : runs) {
    EXPECT_EQ(run.stats.num_draft_tokens, runs[0].stats.num_draft_tokens);
    EXPECT_EQ(run.stats.num_accepted_tokens, runs[0].stats.num_accepted_tokens);
  }
  if (row.drafter.empty()) return;
  const double acceptance = static_cast<double>(runs[0].stats.num_accepted_tokens) /
                            static_cast<double>(runs[0].stats.num_draft_tokens);
  EXPECT_GT(acceptance, 0.3);
  EXPECT_LT(acceptance, 0.95);
}

std::string missing_for(const MatrixRow& row) { return missing_for(row.layout()); }

class SupportMatrix : public RankTest<MatrixRow> {};

TEST_P(SupportMatrix, IsGreen) { expect_green(GetParam(), num_test_prompts(40)); }

// Run by hand: as many prompts as the matrix asks for.
TEST_P(SupportMatrix, DISABLED_IsGreenFor1000Prompts) { expect_green(GetParam(), 1000); }

INSTANTIATE_TEST_SUITE_P(All, SupportMatrix, testing::ValuesIn(matrix_rows()),
                         [](const auto& test) {
                           return "Row" + std::to_string(test.param.number);
                         });

}  // namespace
}  // namespace foretoken
