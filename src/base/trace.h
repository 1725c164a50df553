#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/profiler_ranges.h"
#include "base/result.h"

namespace foretoken {

// Numbers that stand beside an event. The names live as long as the process.
struct TraceDetails {
  static constexpr size_t kMax = 6;
  using Names = std::array<const char*, kMax>;
  const Names* names = nullptr;  // null: there are none
  std::array<int32_t, kMax> values{};
};

// What one thread, or the device, did and when. Keeps the newest events and allocates nothing after
// it was made. One thread adds; nobody reads meanwhile.
class TraceLane {
 public:
  struct Event {
    const char* name;  // lives as long as the process
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t number;  // of the step, or kNoNumber
    TraceDetails details;
  };
  static constexpr uint64_t kNoNumber = kNoRangeNumber;

  TraceLane(std::string name, size_t capacity, const ProfilerRanges& ranges);

  // Times of now_ns().
  void add(const char* name, int64_t begin_ns, int64_t end_ns, uint64_t number = kNoNumber,
           const TraceDetails& details = {});

  // The same, but makes the newest event longer where that has this name and number and ended at
  // most `max_gap_ns` before: for many small things in a row.
  void extend(const char* name, int64_t begin_ns, int64_t end_ns, int64_t max_gap_ns,
              uint64_t number = kNoNumber);

  const std::string& name() const { return name_; }
  const ProfilerRanges& ranges() const { return ranges_; }
  // Oldest first.
  std::vector<Event> events() const;
  uint64_t num_dropped() const { return num_added_ > capacity_ ? num_added_ - capacity_ : 0; }

 private:
  const std::string name_;
  const size_t capacity_;
  const ProfilerRanges ranges_;
  std::vector<Event> events_;
  uint64_t num_added_ = 0;
};

// Adds what happens while it lives to a lane; without a lane it does nothing.
class TraceScope {
 public:
  TraceScope(TraceLane* lane, const char* name, uint64_t number = TraceLane::kNoNumber)
      : lane_(lane), name_(name), number_(number) {
    if (lane_ != nullptr) begin();
  }
  ~TraceScope() {
    if (lane_ != nullptr) end();
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  void begin();
  void end();

  TraceLane* const lane_;
  const char* const name_;
  const uint64_t number_;
  int64_t begin_ns_ = 0;
};

// Lanes, and the file that they are written to, in the format of chrome://tracing and Perfetto.
class Trace {
 public:
  // InvalidArgument where the file cannot be written. Without a path there is none: the ranges
  // alone are wanted.
  static Result<std::unique_ptr<Trace>> create(const std::string& path, size_t events_a_lane,
                                               const ProfilerRanges& ranges = {});

  // A new lane, which lives as long as the trace. Before its thread starts.
  TraceLane* add_lane(const std::string& name);
  // Writes what all lanes hold; their threads have ended. `facts` stand beside the events.
  struct Fact {
    std::string name;
    double value;
  };
  Status write(const std::vector<Fact>& facts) const;
  const std::string& path() const { return path_; }

 private:
  Trace(std::string path, size_t events_a_lane, const ProfilerRanges& ranges)
      : path_(std::move(path)), events_a_lane_(events_a_lane), ranges_(ranges) {}

  const std::string path_;
  const size_t events_a_lane_;
  const ProfilerRanges ranges_;
  std::vector<std::unique_ptr<TraceLane>> lanes_;
};

}  // namespace foretoken
