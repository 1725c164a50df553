#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sched/scheduler.h"

namespace foretoken {

// What a device would do with the scheduler's plans, as plain data: block tables, true lengths and,
// for every KV position of both groups, a hash of the tokens up to it. A hash that is read and does
// not fit tells of a block that was never announced, was given away too early, or was written by
// two; so does a block that is free or was handed out again when a row reads it. Every row reads
// the whole window before it; the row that samples reads everything. Drafters keep such hashes too,
// for the entries that they caught up, with counts in page headers; what a span is promised (rows
// that suffice for its num_draft_tokens, blocks for what it proposes) is looked at. With
// `keeps_states` slots have such hashes as well, of the positions behind which their states stand,
// and rows begin nowhere else.
class DeviceModel {
 public:
  struct Config {
    int block_size = 4;
    int window = 0;  // of the windowed group; 0: none
    unsigned seed = 0;
    int end_odds = 40;  // one in so many samples ends its sequence
    std::vector<SchedulerDrafter> drafters = {};
    bool keeps_states = false;  // of the target's layers
  };
  struct Result {
    std::vector<int32_t> ids;
    bool ended = false;
    int draft_missing = 0;
    int num_drafted = 0;
  };
  // A span as the host knew it when it was planned.
  struct Work {
    Span span;
    int slot = 0;
    std::vector<int32_t> known;
  };
  struct Assignment {
    BlockAssignment block;
    uint32_t epoch = 0;
  };
  struct Step {
    std::vector<Work> work;
    std::vector<Assignment> blocks;
    std::vector<BlockMove> moves_out;
    std::vector<BlockMove> moves_in;
    std::vector<StateMove> states_out;
    std::vector<StateMove> states_in;
  };

  // `scheduler` says which blocks are held.
  DeviceModel(const Config& config, const Scheduler& scheduler)
      : config_(config), scheduler_(scheduler), random_(config.seed) {}

  // To be called right after the step was planned.
  Step record(const StepPlan& plan) const;

  int64_t num_proposed() const { return num_proposed_; }
  int64_t num_caught_up() const { return num_caught_up_; }
  // Entries that first catch-ups found in page headers.
  int64_t num_found() const { return num_found_; }
  // Entries of drafters that came with their states.
  int64_t num_state_entries() const { return num_state_entries_; }

  // To be called right before the step is reconciled. One result for each span. `problem` receives
  // an inconsistency.
  std::vector<Result> run(const Step& step, std::string& problem);

 private:
  struct Held {
    BlockId block = kNullBlock;
    uint32_t epoch = 0;
  };
  // The layers of one KV group.
  struct Group {
    std::map<std::pair<int, int>, Held> table;  // by slot and index
    std::map<int64_t, uint64_t> kv;             // by block * block_size + offset
  };
  struct Slot {
    int number = 0;
    std::vector<int32_t> tokens;
    std::vector<uint64_t> hashes;  // of the tokens up to each
    int computed = 0;
    bool ended = false;
    int num_draft_tokens = 0;  // that stand for the next span
    int draft_computed = 0;
    int draft_written = 0;
  };
  struct Header {
    uint32_t epoch = 0;
    std::array<int, kMaxDrafters> counts{};
  };
  // The states of a slot, of the target or of a drafter: behind any of these positions.
  struct States {
    int least = 0;
    int most = 0;
    std::vector<uint64_t> hashes;  // of the tokens up to each
  };
  using AllStates = std::map<int, States>;  // by drafter; -1: the target
  // Of a block in host memory.
  struct Image {
    std::vector<std::optional<uint64_t>> kv;
    std::vector<std::optional<uint64_t>> entries;  // by drafter and offset
    Header header;
  };

  const BlockPool& pool(bool windowed) const {
    return windowed ? *scheduler_.window_blocks() : scheduler_.blocks();
  }
  Group& group(bool windowed) { return windowed ? windowed_ : full_; }
  void move_out(const BlockMove& move);
  void move_in(const BlockMove& move, std::string& problem);
  void move_window(const BlockMove& move, bool inwards, std::string& problem);
  void move_states(const Step& step, std::string& problem);
  void begin_states(const Slot& slot, int drafter, int begin, std::string& problem);
  void set_states(const Slot& slot, int drafter, int least, int most);
  void start(const Work& work);
  Result run_span(const Work& work, std::string& problem);
  void sample(Slot& slot, const Work& work, Result& result, std::string& problem);
  void draft(Slot& slot, const Work& work, std::string& problem);
  void propose(Slot& slot, const Work& work, std::string& problem);
  void keep_written(Slot& slot, int drafter, std::string& problem);
  void write_entry(Slot& slot, int drafter, int position, uint64_t hash, std::string& problem);
  void raise_exact(Slot& slot, int drafter, int end, std::string& problem);
  int find_exact(Slot& slot, int drafter);
  static void push_token(Slot& slot, int32_t id);
  void write_row(const Slot& slot, int position, uint64_t hash, std::string& problem);
  void write(bool windowed, const Slot& slot, int position, uint64_t hash, std::string& problem);
  void read(bool windowed, const Slot& slot, int begin, int end, std::string& problem);

  const Config config_;
  const Scheduler& scheduler_;
  std::mt19937 random_;
  std::map<int, Slot> slots_;
  Group full_;
  Group windowed_;
  std::map<BlockId, Header> headers_;
  std::map<int, Image> images_;
  std::map<int, std::vector<std::optional<uint64_t>>> window_images_;
  std::map<int, AllStates> state_images_;
  std::map<std::pair<int, int64_t>, uint64_t> entries_;  // by drafter and place
  std::map<int, AllStates> states_;                      // by slot
  std::map<int, AllStates> snapshots_;                   // by number
  int64_t num_state_entries_ = 0;
  int64_t num_proposed_ = 0;
  int64_t num_caught_up_ = 0;
  int64_t num_found_ = 0;
};

}  // namespace foretoken
