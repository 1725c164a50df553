#include "engine/measure/step_bench.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "kernels/branches.h"
#include "kernels/experts/route_experts.h"
#include "kernels/step/mark_time.h"
#include "spec/touched_experts.h"

namespace foretoken {
namespace {

constexpr int kNumSamples = 7;
constexpr int kMaxRuns = 10000;  // of a sample
constexpr size_t kOpsOfAReplay = 32;
constexpr int kNumSteps = 21;  // whole ones

SlotParams greedy_params(int max_len) {
  SlotParams params{};
  params.top_p = 1;
  params.repetition_penalty = 1;
  params.prompt_len = 1;
  params.max_len = max_len;
  params.max_draft_tokens = kMaxDraftTokens;
  params.num_logprobs = kNoLogprobs;
  return params;
}

double median_of(std::vector<double>& samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

// Of the places that there are; 0 where there is none of them.
double mean_at(const std::vector<double>& values, const std::vector<size_t>& places) {
  double sum = 0;
  int count = 0;
  for (const size_t place : places) {
    if (place >= values.size()) continue;
    sum += values[place];
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

bool is_prompt(const MadeUpSequence& sequence) { return sequence.rows > kMaxOwnDrafts + 1; }

int logits_rows_of(const MadeUpSequence& sequence) {
  return is_prompt(sequence) ? 1 : sequence.rows;
}

}  // namespace

StepBench::StepBench(const StepBenchParts& parts)
    : parts_(parts),
      pinned_(parts.device, MemoryKind::kPinned),
      arena_(parts.device, MemoryKind::kDevice) {}

Status StepBench::take_memory() {
  if (states_ != nullptr) return {};
  const char* what = "made-up sequences";
  const auto slots = static_cast<size_t>(parts_.memory.batch.num_slots);
  const size_t table = slots * static_cast<size_t>(parts_.memory.batch.max_blocks);
  const auto vocab = static_cast<size_t>(parts_.model.config().vocab_size);
  FT_ASSIGN_OR_RETURN(params_, pinned_.take_array<SlotParams>(slots, what));
  FT_ASSIGN_OR_RETURN(tables_, pinned_.take_array<int32_t>(table, what));
  FT_ASSIGN_OR_RETURN(window_tables_, pinned_.take_array<int32_t>(table, what));
  FT_ASSIGN_OR_RETURN(marks_, pinned_.take_array<int64_t>(2, what));
  FT_ASSIGN_OR_RETURN(op_marks_, pinned_.take_array<int64_t>(2 * kMaxMarkedOps, what));
  FT_ASSIGN_OR_RETURN(counts_, pinned_.take_array<StepCounts>(1, what));
  FT_ASSIGN_OR_RETURN(rows_,
                      pinned_.take_array<int32_t>(static_cast<size_t>(parts_.max_rows), what));
  FT_ASSIGN_OR_RETURN(logits_, arena_.take_array<float>(
                                   static_cast<size_t>(parts_.max_logits_rows) * vocab, "logits"));
  FT_RETURN_IF_ERROR(ids_.draw(pinned_, parts_.model.config().vocab_size));
  FT_ASSIGN_OR_RETURN(states_, pinned_.take_array<SlotState>(slots, what));
  return {};
}

int64_t StepBench::blocks_of(const MadeUpSequence& sequence) const {
  const int64_t size = parts_.memory.batch.block_size;
  return (int64_t{sequence.context} + sequence.rows + size - 1) / size;
}

Status StepBench::check_sequences(const std::vector<MadeUpSequence>& sequences) const {
  int64_t num_rows = 0;
  int64_t num_blocks = 0;
  for (const MadeUpSequence& sequence : sequences) {
    FT_CHECK(sequence.context >= 0 && sequence.rows > 0);
    num_rows += sequence.rows;
    num_blocks += blocks_of(sequence);
    if (int64_t{sequence.context} + sequence.rows > parts_.max_len) {
      return invalid_argument("a sequence of " + std::to_string(sequence.context) +
                              " positions and " + std::to_string(sequence.rows) +
                              " rows exceeds max_model_len " + std::to_string(parts_.max_len) +
                              "; lower --context or raise --max-model-len");
    }
  }
  const auto num_seqs = static_cast<int64_t>(sequences.size());
  if (num_seqs > first_branch(parts_.memory.batch)) {
    return invalid_argument("a batch of " + std::to_string(num_seqs) + " exceeds max_num_seqs " +
                            std::to_string(first_branch(parts_.memory.batch)) +
                            "; raise --max-num-seqs");
  }
  if (num_rows > parts_.max_rows) {
    return invalid_argument("a step of " + std::to_string(num_rows) +
                            " rows exceeds max_num_batched_tokens " +
                            std::to_string(parts_.max_rows) + "; raise --max-num-batched-tokens");
  }
  if (num_blocks >= parts_.num_blocks) {
    return invalid_argument("the sequences need " + std::to_string(num_blocks) + " KV blocks of " +
                            std::to_string(parts_.num_blocks - 1) +
                            "; lower --context or the batch size");
  }
  return {};
}

void StepBench::write_states(const std::vector<MadeUpSequence>& sequences) {
  for (size_t i = 0; i < sequences.size(); ++i) {
    const MadeUpSequence& sequence = sequences[i];
    SlotState& state = states_[i];
    state = {};
    state.computed = sequence.context;
    state.len = sequence.context + (is_prompt(sequence) ? sequence.rows : 1);
    state.num_draft_tokens = is_prompt(sequence) ? 0 : sequence.rows - 1;
    state.draft.computed = sequence.context;
    ids_.write_drafts(i, state);
    params_[i] = greedy_params(parts_.max_len);
  }
}

// Blocks 1, 2, ... in turn. The windowed group may have fewer, which are then shared.
void StepBench::write_tables(const std::vector<MadeUpSequence>& sequences) {
  const int max_blocks = parts_.memory.batch.max_blocks;
  int32_t next = 1;
  for (size_t i = 0; i < sequences.size(); ++i) {
    int32_t* row = tables_ + static_cast<int64_t>(i) * max_blocks;
    int32_t* window_row = window_tables_ + static_cast<int64_t>(i) * max_blocks;
    std::fill_n(row, max_blocks, 0);
    std::fill_n(window_row, max_blocks, 0);
    for (int b = 0; b < blocks_of(sequences[i]); ++b, ++next) {
      row[b] = next;
      if (parts_.num_window_blocks > 1) window_row[b] = 1 + next % (parts_.num_window_blocks - 1);
    }
  }
}

void StepBench::write_plan(uint64_t step) {
  const PlanView entry = parts_.runner.entry(step);
  *entry.header = {step, static_cast<int32_t>(sequences_.size()), 0, 0, 0, 0};
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const bool prompt = is_prompt(sequences_[i]);
    entry.spans[i] = {};
    entry.spans[i].slot = static_cast<int32_t>(i);
    entry.spans[i].num_tokens = prompt ? sequences_[i].rows : 1;
    entry.spans[i].max_verified = prompt ? 0 : sequences_[i].rows - 1;
  }
}

// Into the pages of all blocks of write_tables.
void StepBench::copy_ids() {
  int64_t num_blocks = 0;
  for (const MadeUpSequence& sequence : sequences_) num_blocks += blocks_of(sequence);
  std::vector<int32_t> blocks(static_cast<size_t>(num_blocks));
  std::iota(blocks.begin(), blocks.end(), 1);
  ids_.copy_to_pages(parts_.queue, parts_.memory.batch, blocks);
}

void StepBench::copy_states() {
  parts_.queue.copy(parts_.memory.batch.slots, states_, sequences_.size() * sizeof(SlotState));
}

Status StepBench::upload(const std::vector<MadeUpSequence>& sequences) {
  FT_RETURN_IF_ERROR(take_memory());
  FT_RETURN_IF_ERROR(check_sequences(sequences));
  const BatchState& batch = parts_.memory.batch;
  parts_.memory.reset(parts_.queue);
  FT_RETURN_IF_ERROR(parts_.queue.drain());
  sequences_ = sequences;
  write_states(sequences);
  write_tables(sequences);
  write_plan(0);
  const size_t count = sequences.size();
  const size_t table_bytes = count * static_cast<size_t>(batch.max_blocks) * sizeof(int32_t);
  copy_states();
  copy_ids();
  parts_.queue.copy(batch.params, params_, count * sizeof(SlotParams));
  parts_.queue.copy(batch.block_tables, tables_, table_bytes);
  if (batch.window_tables != nullptr) {
    parts_.queue.copy(batch.window_tables, window_tables_, table_bytes);
  }
  num_rows_ = num_logits_rows_ = 0;
  for (const MadeUpSequence& sequence : sequences) {
    num_rows_ += sequence.rows;
    num_logits_rows_ += logits_rows_of(sequence);
  }
  plan_ = {};
  for (const MadeUpSequence& sequence : sequences)
    plan_.spans.push_back({.num_tokens = sequence.rows});
  plan_.num_rows = num_rows_;
  plan_.num_logits_rows = num_logits_rows_;
  parts_.runner.upload_plan(plan_);
  return parts_.queue.drain();
}

std::vector<ListedOp> StepBench::step_ops() {
  OpList list;
  parts_.runner.enqueue(list, plan_);
  return list.ops();
}

// As StepShapes rounds rows up.
int StepBench::row_bucket() const {
  int rows = 1;
  while (rows < num_rows_) rows *= 2;
  return std::min(rows, parts_.max_rows);
}

std::vector<ListedOp> StepBench::forward_ops(bool with_logits) {
  OpList list;
  const StepTensors& tensors = parts_.memory.tensors;
  parts_.model.forward(list, tensors, parts_.memory.batch, parts_.caches,
                       {.max_rows = row_bucket(), .runs = runs_of(plan_)});
  if (!with_logits) return list.ops();
  const int num_rows = std::min(row_bucket(), num_logits_rows_);
  for (int offset = 0; offset < num_rows; offset += parts_.max_logits_rows) {
    const int rows = std::min(parts_.max_logits_rows, num_rows - offset);
    parts_.model.logits(list, tensors, offset, rows, logits_);
  }
  return list.ops();
}

// The same place as of the op before gives the same rows.
Result<LiveRows> StepBench::live_rows(const LiveRowsPlace& place, LiveRows* last) {
  LiveRows live = *last;
  if (place.counts == nullptr) return LiveRows{};
  parts_.queue.copy(counts_, place.counts, sizeof(StepCounts));
  FT_RETURN_IF_ERROR(parts_.queue.drain());
  live.counts = *counts_;
  const auto read = [&](const int32_t* from, std::vector<int32_t>* to) {
    const auto count = static_cast<size_t>(live.counts.num_rows);
    if (from == nullptr || count == 0) return Status();
    parts_.queue.copy(rows_, from, count * sizeof(int32_t));
    FT_RETURN_IF_ERROR(parts_.queue.drain());
    to->assign(rows_, rows_ + count);
    return Status();
  };
  FT_RETURN_IF_ERROR(read(place.positions, &live.positions));
  FT_RETURN_IF_ERROR(read(place.row_slot, &live.row_slot));
  *last = live;
  return live;
}

Result<OpCost> StepBench::cost(const std::vector<ListedOp>& ops) {
  OpCost sum;
  LiveRows last;
  for (const ListedOp& op : ops) {
    const void* args = op.args.data();
    FT_ASSIGN_OR_RETURN(LiveRows live,
                        live_rows(live_rows_place(static_cast<Op>(op.op), args), &last));
    live.weight_bytes = weight_bytes(static_cast<Op>(op.op), args);
    sum += op_cost(static_cast<Op>(op.op), args, live);
  }
  return sum;
}

// Of the op's weights where they are quantised.
int64_t StepBench::weight_bytes(Op op, const void* args) const {
  int64_t bytes = 0;
  for (const void* weight : op_weights(op, args)) {
    bytes += parts_.device.quantized_weight_bytes(weight);
  }
  return bytes;
}

// Equal ops have equal costs too: the logits of the last rows may be fewer than those before.
Result<std::vector<StepBench::OpGroup>> StepBench::group_ops(const std::vector<ListedOp>& ops) {
  std::vector<OpGroup> groups;
  LiveRows last;
  size_t place = 0;
  for (const ListedOp& listed : ops) {
    const auto op = static_cast<Op>(listed.op);
    const void* args = listed.args.data();
    FT_ASSIGN_OR_RETURN(LiveRows live, live_rows(live_rows_place(op, args), &last));
    live.weight_bytes = weight_bytes(op, args);
    OpTime time{.name = op_name(op),
                .shape = op_shape(op, args, live.weight_bytes),
                .cost = op_cost(op, args, live)};
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const OpGroup& group) {
      return group.time.name == time.name && group.time.shape == time.shape &&
             group.time.cost == time.cost;
    });
    OpGroup& group = found != groups.end() ? *found : groups.emplace_back(OpGroup{time, {}, {}});
    ++group.time.count;
    group.ops.push_back(listed);
    group.places.push_back(place++);
  }
  return groups;
}

Result<std::vector<OpTime>> StepBench::op_times(const std::vector<ListedOp>& ops, double seconds) {
  // Rows of some ops are what ops of a step before them have found out.
  FT_ASSIGN_OR_RETURN(const std::vector<double> in_step, in_step_ns(ops));
  FT_ASSIGN_OR_RETURN(std::vector<OpGroup> groups, group_ops(ops));
  std::vector<OpTime> times;
  for (OpGroup& group : groups) {
    group.time.in_step_ns = mean_at(in_step, group.places);
    if (!op_repeats(static_cast<Op>(group.ops.front().op))) {
      group.time.ns = group.time.in_step_ns;
    } else {
      // What a replay costs is shared by many.
      std::vector<ListedOp> many = group.ops;
      while (many.size() < kOpsOfAReplay) {
        many.insert(many.end(), group.ops.begin(), group.ops.end());
      }
      FT_ASSIGN_OR_RETURN(const double ns, time_ns(many, true, seconds));
      group.time.ns = ns / static_cast<double>(many.size());
    }
    times.push_back(std::move(group.time));
  }
  return times;
}

// The plan's number must be that of the device's counter, which each step raises.
void StepBench::begin_step() {
  write_plan(parts_.memory.published.word->load());
  copy_states();
}

Status StepBench::run_step(Graph& graph) {
  begin_step();
  parts_.queue.replay(graph);
  return parts_.queue.drain();
}

// Lists of layers lie at the same place: they are looked at before the next layer's.
Result<TouchedExperts> StepBench::touched_experts(const std::vector<ListedOp>& ops) {
  TouchedExperts all;
  begin_step();
  for (const ListedOp& op : ops) {
    launch_ops(parts_.queue, {&op, 1});
    if (static_cast<Op>(op.op) != Op::kRouteExperts) continue;
    RouteExpertsArgs args;
    std::memcpy(&args, op.args.data(), sizeof args);
    const ExpertLists& lists = args.lists;
    if (lists.count + 1 > parts_.max_rows) continue;
    parts_.queue.copy(rows_, lists.begins,
                      (static_cast<size_t>(lists.count) + 1) * sizeof(int32_t));
    FT_RETURN_IF_ERROR(parts_.queue.drain());
    for (int e = 0; e < lists.count; ++e) all.touched += rows_[e + 1] > rows_[e] ? 1 : 0;
    ++all.mixtures;
    all.count += lists.count;
    all.expected += lists.count * touched_share(lists.all_experts(), lists.top_k, num_rows_);
  }
  const double mixtures = std::max(all.mixtures, 1);
  for (double* sum : {&all.count, &all.touched, &all.expected}) *sum /= mixtures;
  FT_RETURN_IF_ERROR(parts_.queue.drain());
  return all;
}

Result<double> StepBench::step_ns(const std::vector<ListedOp>& ops) {
  parts_.queue.begin_capture();
  mark_time(parts_.queue, {&marks_[0]});
  launch_ops(parts_.queue, ops);
  mark_time(parts_.queue, {&marks_[1]});
  const std::unique_ptr<Graph> graph = parts_.queue.end_capture();
  if (graph == nullptr) return parts_.queue.capture_error();
  std::vector<double> samples;
  for (int i = 0; i < kNumSteps; ++i) {
    FT_RETURN_IF_ERROR(run_step(*graph));
    samples.push_back(static_cast<double>(marks_[1] - marks_[0]));
  }
  return median_of(samples);
}

// A pair of marks with nothing between them tells what marks cost.
Result<std::vector<double>> StepBench::in_step_ns(const std::vector<ListedOp>& ops) {
  size_t num_marked = 1;
  parts_.queue.begin_capture();
  mark_time(parts_.queue, {&op_marks_[0]});
  mark_time(parts_.queue, {&op_marks_[1]});
  for (const ListedOp& op : ops) {
    const bool marked = num_marked < kMaxMarkedOps;
    if (marked) mark_time(parts_.queue, {&op_marks_[2 * num_marked]});
    launch_ops(parts_.queue, {&op, 1});
    if (marked) mark_time(parts_.queue, {&op_marks_[2 * num_marked++ + 1]});
  }
  const std::unique_ptr<Graph> graph = parts_.queue.end_capture();
  if (graph == nullptr) return parts_.queue.capture_error();
  std::vector<std::vector<double>> samples(num_marked - 1);
  for (int run = 0; run < kNumSteps; ++run) {
    FT_RETURN_IF_ERROR(run_step(*graph));
    const int64_t cost = op_marks_[1] - op_marks_[0];
    for (size_t i = 1; i < num_marked; ++i) {
      const int64_t ns = op_marks_[2 * i + 1] - op_marks_[2 * i] - cost;
      samples[i - 1].push_back(static_cast<double>(std::max<int64_t>(ns, 0)));
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& of_op : samples) medians.push_back(median_of(of_op));
  return medians;
}

Result<double> StepBench::sample_ns(const std::function<void()>& enqueue, int count) {
  mark_time(parts_.queue, {&marks_[0]});
  for (int i = 0; i < count; ++i) enqueue();
  mark_time(parts_.queue, {&marks_[1]});
  FT_RETURN_IF_ERROR(parts_.queue.drain());
  return static_cast<double>(marks_[1] - marks_[0]) / count;
}

Result<double> StepBench::time_ns(const std::vector<ListedOp>& ops, bool graph, double seconds) {
  FT_RETURN_IF_ERROR(take_memory());
  std::unique_ptr<Graph> recorded;
  if (graph) {
    parts_.queue.begin_capture();
    launch_ops(parts_.queue, ops);
    recorded = parts_.queue.end_capture();
    if (recorded == nullptr) return parts_.queue.capture_error();
  }
  const auto enqueue = [&] {
    recorded != nullptr ? parts_.queue.replay(*recorded) : launch_ops(parts_.queue, ops);
  };
  // The first run may pay for what is done once.
  FT_RETURN_IF_ERROR(sample_ns(enqueue, 1).status());
  FT_ASSIGN_OR_RETURN(const double expected, sample_ns(enqueue, 2));
  const double fitting = seconds * 1e9 / kNumSamples / std::max(expected, 1.0);
  const int count = static_cast<int>(std::clamp(fitting, 1.0, double{kMaxRuns}));
  std::vector<double> samples;
  for (int i = 0; i < kNumSamples; ++i) {
    FT_ASSIGN_OR_RETURN(samples.emplace_back(), sample_ns(enqueue, count));
  }
  return median_of(samples);
}

}  // namespace foretoken
