#include "serve/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace foretoken {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily family_of(const char* name, const char* help, MetricType type, double value) {
  prometheus::ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {name, help, type, {std::move(metric)}};
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The fields of /proc/self/stat behind the name of the program, which may hold blanks: the first is
// the third of proc(5).
std::vector<std::string> stat_fields() {
  const std::string text = text_of("/proc/self/stat");
  const size_t end = text.rfind(')');
  std::vector<std::string> fields;
  if (end == std::string::npos) return fields;
  std::istringstream rest(text.substr(end + 1));
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

// When the system started, in seconds since 1970.
std::optional<double> boot_time() {
  std::istringstream lines(text_of("/proc/stat"));
  for (std::string name; lines >> name;) {
    double seconds = 0;
    if (name == "btime" && lines >> seconds) return seconds;
  }
  return std::nullopt;
}

void add_times_and_memory(std::vector<MetricFamily>* families) {
  constexpr size_t kFirst = 3;  // as proc(5) counts
  constexpr size_t kUserTime = 14, kSystemTime = 15, kStart = 22, kVirtual = 23, kResident = 24;
  const std::vector<std::string> fields = stat_fields();
  if (fields.size() + kFirst <= kResident) return;
  const auto field = [&](size_t number) { return std::stod(fields[number - kFirst]); };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  families->push_back(family_of("process_virtual_memory_bytes", "Virtual memory size in bytes.",
                                MetricType::Gauge, field(kVirtual)));
  families->push_back(family_of("process_resident_memory_bytes", "Resident memory size in bytes.",
                                MetricType::Gauge,
                                field(kResident) * static_cast<double>(sysconf(_SC_PAGESIZE))));
  if (const std::optional<double> boot = boot_time()) {
    families->push_back(family_of("process_start_time_seconds",
                                  "Start of the process in seconds since 1970.", MetricType::Gauge,
                                  *boot + field(kStart) / ticks));
  }
  families->push_back(family_of("process_cpu_seconds_total",
                                "Processor time of the process in seconds.", MetricType::Counter,
                                (field(kUserTime) + field(kSystemTime)) / ticks));
}

void add_files(std::vector<MetricFamily>* families) {
  std::error_code error;
  size_t open = 0;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; file != end;
       file.increment(error)) {
    ++open;
  }
  if (error || open == 0) return;
  // One of them reads the list.
  families->push_back(family_of("process_open_fds", "Open file descriptors.", MetricType::Gauge,
                                static_cast<double>(open - 1)));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  families->push_back(family_of("process_max_fds", "Most file descriptors that may be open.",
                                MetricType::Gauge, static_cast<double>(limit.rlim_cur)));
}

}  // namespace

std::vector<MetricFamily> process_metrics() {
  std::vector<MetricFamily> families;
  add_times_and_memory(&families);
  add_files(&families);
  return families;
}

}  // namespace foretoken
