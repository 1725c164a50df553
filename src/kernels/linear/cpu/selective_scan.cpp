#include "kernels/linear/selective_scan.h"

#include <algorithm>

#include "kernels/attention/gate_heads.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/linear/state_run.h"

namespace foretoken::cpu {
namespace {

// Channels of a task, which takes all rows one after the other.
constexpr int kScanChannels = 64;

// What a task keeps of its channels; zero behind the last one.
struct ScanTask {
  ScanTask(const SelectiveScanArgs& a, int first_channel)
      : args(a), first(first_channel), count(std::min(kScanChannels, a.channels - first_channel)) {
    std::fill_n(rates, a.d_state * kScanChannels, 0.0f);
    for (int n = 0; n < a.d_state; ++n) {
      const float* from = a.rates + int64_t{n} * a.channels + first;
      for (int c = 0; c < count; ++c) rates[n * kScanChannels + c] = -from[c];
    }
    std::fill_n(x, kScanChannels, 0.0f);
    std::fill_n(step, kScanChannels, 0.0f);
  }

  const SelectiveScanArgs& args;
  int first;
  int count;
  alignas(64) float h[kMaxScanState * kScanChannels];
  alignas(64) float rates[kMaxScanState * kScanChannels];  // times -1
  alignas(64) float x[kScanChannels];                      // of a row, and so are the next
  alignas(64) float step[kScanChannels];
  alignas(64) float sums[kScanChannels];
};

float* scan_state(const ScanTask& task, int slot, int n) {
  const SelectiveScanArgs& a = task.args;
  return a.states + slot * a.state_size() + int64_t{n} * a.channels + task.first;
}

void load_scan(ScanTask& task, int slot, bool is_zero) {
  std::fill_n(task.h, task.args.d_state * kScanChannels, 0.0f);
  for (int n = 0; !is_zero && n < task.args.d_state; ++n) {
    std::copy_n(scan_state(task, slot, n), task.count, task.h + n * kScanChannels);
  }
}

void store_scan(const ScanTask& task, int slot) {
  for (int n = 0; n < task.args.d_state; ++n) {
    std::copy_n(task.h + n * kScanChannels, task.count, scan_state(task, slot, n));
  }
}

// h = exp(rates * step) * h + step * x * keys, sums = queries * h.
FT_HOT void scan_row(ScanTask& task, const float* keys, const float* queries) {
  for (int c = 0; c < kScanChannels; c += kOctet) {
    Octet step, x, sum = {};
    load(step, task.step + c);
    load(x, task.x + c);
    const Octet taken = step * x;
    for (int n = 0; n < task.args.d_state; ++n) {
      Octet rate, h, decay;
      load(rate, task.rates + n * kScanChannels + c);
      load(h, task.h + n * kScanChannels + c);
      exp_nonpositive(decay, rate * step);
      h = h * decay + taken * keys[n];
      sum = sum + h * queries[n];
      store(task.h + n * kScanChannels + c, h);
    }
    store(task.sums + c, sum);
  }
}

float* pending_update(const SelectiveScanArgs& a, int slot, int position) {
  return a.pending + (int64_t{slot} * a.pending_rows + position % a.pending_rows) * a.update_size();
}

void scan_pending(ScanTask& task, int slot, int position) {
  const SelectiveScanArgs& a = task.args;
  const float* update = pending_update(a, slot, position);
  std::copy_n(update + a.d_state + task.first, task.count, task.x);
  std::copy_n(update + a.d_state + a.channels + task.first, task.count, task.step);
  scan_row(task, update, update);
}

void scan_own(ScanTask& task, int row) {
  const SelectiveScanArgs& a = task.args;
  const int64_t at = int64_t{row} * a.channels + task.first;
  std::copy_n(a.x + at, task.count, task.x);
  for (int c = 0; c < task.count; ++c) task.step[c] = gate_softplus(a.steps[at + c]);
  const int64_t maps = int64_t{row} * a.maps_stride;
  scan_row(task, a.keys + maps, a.queries + maps);
  for (int c = 0; c < task.count; ++c) {
    a.out[at + c] = task.sums[c] + a.skip[task.first + c] * task.x[c];
  }
}

void scan_run(ScanTask& task, int begin, int end) {
  const SelectiveScanArgs& a = task.args;
  const int slot = a.row_slot[begin], position = a.positions[begin];
  const int len = known_len(a.slots, slot, position + end - begin, a.pending_rows);
  const StateRun run = state_run(position, end - begin, a.committed[slot], len, a.pending_rows);
  load_scan(task, slot, run.from == 0);
  for (int at = run.from; at < run.end; ++at) {
    if (at == run.keep && run.keep > run.from) store_scan(task, slot);
    at < run.begin ? scan_pending(task, slot, at) : scan_own(task, begin + at - run.begin);
  }
  if (run.keep == run.end) store_scan(task, slot);
}

// What the next run goes on from, once no task reads what this one went on from.
void keep_scans(const SelectiveScanArgs& a, const StateRows& rows) {
  for (int row = 0; row < rows.count; ++row) {
    const int slot = a.row_slot[row];
    const int len = known_len(a.slots, slot, a.positions[row] + 1, a.pending_rows);
    if (stays_pending(rows, row, len, a.pending_rows)) {
      float* update = pending_update(a, slot, a.positions[row]);
      const int64_t at = int64_t{row} * a.channels;
      std::copy_n(a.keys + int64_t{row} * a.maps_stride, a.d_state, update);
      std::copy_n(a.x + at, a.channels, update + a.d_state);
      float* steps = update + a.d_state + a.channels;
      for (int c = 0; c < a.channels; ++c) steps[c] = gate_softplus(a.steps[at + c]);
    }
    if (!rows.continues(row + 1)) {
      a.committed[slot] = kept_behind(rows, row, a.committed[slot], len);
    }
  }
}

}  // namespace

void selective_scan(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const SelectiveScanArgs*>(args);
  const StateRows rows{a.positions, a.row_slot,
                       live_rows(*a.counts, RowKind::kToken, 0, a.max_rows)};
  if (rows.count == 0) return;
  pool.parallel_for((a.channels + kScanChannels - 1) / kScanChannels, [&](int64_t index, int) {
    ScanTask task(a, static_cast<int>(index) * kScanChannels);
    for (int begin = 0; begin < rows.count;) {
      const int end = rows.run_end(begin);
      scan_run(task, begin, end);
      begin = end;
    }
  });
  keep_scans(a, rows);
}

}  // namespace foretoken::cpu
