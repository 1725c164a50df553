#include "base/trace.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr int kProcess = 1;
constexpr double kMicroseconds = 1e-3;  // of a nanosecond

json lane_name_json(size_t lane, const std::string& name) {
  return {{"name", "thread_name"},
          {"ph", "M"},
          {"pid", kProcess},
          {"tid", lane},
          {"args", {{"name", name}}}};
}

json event_json(size_t lane, const TraceLane::Event& event, int64_t origin_ns) {
  json object = {{"name", event.name},
                 {"ph", "X"},
                 {"pid", kProcess},
                 {"tid", lane},
                 {"ts", static_cast<double>(event.begin_ns - origin_ns) * kMicroseconds},
                 {"dur", static_cast<double>(event.end_ns - event.begin_ns) * kMicroseconds}};
  if (event.number != TraceLane::kNoNumber) object["args"] = {{"step", event.number}};
  if (event.details.names == nullptr) return object;
  for (size_t i = 0; i < TraceDetails::kMax; ++i) {
    object["args"][(*event.details.names)[i]] = event.details.values[i];
  }
  return object;
}

Status cannot_write(const std::string& path) {
  return invalid_argument("cannot write --profile '" + path +
                          "'; name a file in a folder that "
                          "exists and can be written to");
}

}  // namespace

TraceLane::TraceLane(std::string name, size_t capacity, const ProfilerRanges& ranges)
    : name_(std::move(name)), capacity_(capacity), ranges_(ranges) {
  FT_CHECK(capacity > 0);
  events_.reserve(capacity);
}

void TraceLane::add(const char* name, int64_t begin_ns, int64_t end_ns, uint64_t number,
                    const TraceDetails& details) {
  const Event event{name, begin_ns, end_ns, number, details};
  if (events_.size() < capacity_) {
    events_.push_back(event);
  } else {
    events_[num_added_ % capacity_] = event;
  }
  ++num_added_;
}

void TraceLane::extend(const char* name, int64_t begin_ns, int64_t end_ns, int64_t max_gap_ns,
                       uint64_t number) {
  if (num_added_ > 0) {
    Event& newest = events_[(num_added_ - 1) % capacity_];
    const bool same = newest.name == name && newest.number == number;
    if (same && begin_ns - newest.end_ns <= max_gap_ns) {
      newest.end_ns = end_ns;
      return;
    }
  }
  add(name, begin_ns, end_ns, number);
}

std::vector<TraceLane::Event> TraceLane::events() const {
  std::vector<Event> ordered = events_;
  const auto oldest = static_cast<std::ptrdiff_t>(num_dropped() % capacity_);
  std::rotate(ordered.begin(), ordered.begin() + oldest, ordered.end());
  return ordered;
}

void TraceScope::begin() {
  if (lane_->ranges().begin != nullptr) lane_->ranges().begin(name_, number_);
  begin_ns_ = now_ns();
}

void TraceScope::end() {
  lane_->add(name_, begin_ns_, now_ns(), number_);
  if (lane_->ranges().end != nullptr) lane_->ranges().end();
}

Result<std::unique_ptr<Trace>> Trace::create(const std::string& path, size_t events_a_lane,
                                             const ProfilerRanges& ranges) {
  // A path that cannot be written to shall not be found out at the end of a long run.
  if (!path.empty() && !std::ofstream(path, std::ios::app)) return cannot_write(path);
  return std::unique_ptr<Trace>(new Trace(path, events_a_lane, ranges));
}

TraceLane* Trace::add_lane(const std::string& name) {
  return lanes_.emplace_back(std::make_unique<TraceLane>(name, events_a_lane_, ranges_)).get();
}

// One event after the other, so that the memory is that of one.
Status Trace::write(const std::vector<Fact>& facts) const {
  if (path_.empty()) return {};
  std::ofstream file(path_);
  int64_t origin_ns = INT64_MAX;
  json other = {{"program", "foretoken"}};
  for (const auto& lane : lanes_) {
    for (const TraceLane::Event& event : lane->events()) {
      origin_ns = std::min(origin_ns, event.begin_ns);
    }
    if (lane->num_dropped() > 0) {
      other["oldest events left out: " + lane->name()] = lane->num_dropped();
    }
  }
  for (const Fact& fact : facts) other[fact.name] = fact.value;
  file << "{\"displayTimeUnit\":\"ns\",\"otherData\":" << other.dump() << ",\"traceEvents\":[";
  const char* comma = "\n";
  for (size_t i = 0; i < lanes_.size(); ++i) {
    file << comma << lane_name_json(i, lanes_[i]->name()).dump();
    comma = ",\n";
    for (const TraceLane::Event& event : lanes_[i]->events()) {
      file << comma << event_json(i, event, origin_ns).dump();
    }
  }
  file << "\n]}\n";
  file.flush();
  return file ? Status() : cannot_write(path_);
}

}  // namespace foretoken
