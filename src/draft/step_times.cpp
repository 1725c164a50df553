#include "draft/step_times.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/json_object.h"

namespace foretoken {
namespace {

constexpr int kFormat = 3;
constexpr int64_t kMaxNs = int64_t{1} << 40;  // 18 minutes; keeps products within 64 bits
constexpr int kMaxSize = 1 << 20;
constexpr int64_t kMaxTokens = int64_t{1} << 32;    // of a step
constexpr int64_t kMaxPicoseconds = 1'000'000'000;  // 1 ms a token

nlohmann::ordered_json curve_json(const TimeCurve& curve) {
  auto points = nlohmann::ordered_json::array();
  for (const TimeCurve::Point& point : curve.points()) points.push_back({point.size, point.ns});
  return points;
}

Status bad_curve(const std::string& where, const std::string& problem) {
  return invalid_argument(where + ": " + problem +
                          "; give pairs [size, ns] with growing sizes and times that do not fall, "
                          "or delete the file to measure again");
}

Result<TimeCurve> read_curve(const nlohmann::json& json, const std::string& where) {
  TimeCurve curve;
  if (!json.is_array()) return bad_curve(where, "is not a list");
  for (const auto& pair : json) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() ||
        !pair[1].is_number_integer()) {
      return bad_curve(where, "'" + pair.dump() + "' is not a pair of integers");
    }
    const auto size = pair[0].get<int64_t>();
    const auto ns = pair[1].get<int64_t>();
    const auto points = curve.points();
    const bool follows = points.empty() || (size > points.back().size && ns >= points.back().ns);
    if (size < 1 || size > kMaxSize || ns < 0 || ns > kMaxNs || !follows) {
      return bad_curve(where, "'" + pair.dump() + "' is out of order or out of range");
    }
    curve.add(static_cast<int>(size), ns);
  }
  return curve;
}

// A member of an object of which nothing else than `keys` is known.
Status check_keys(const nlohmann::json& json, std::initializer_list<const char*> keys,
                  const std::string& where, const std::string& optional = {}) {
  if (!json.is_object()) return invalid_argument(where + " must be a JSON object");
  for (const char* key : keys) {
    if (json.contains(key)) continue;
    return invalid_argument(where + " lacks '" + key + "'; delete the file to measure again");
  }
  for (const auto& [key, value] : json.items()) {
    const bool known =
        std::any_of(keys.begin(), keys.end(), [&](const char* k) { return key == k; });
    if (!known && key != optional)
      return invalid_argument(where + " has an unknown key '" + key + "'; remove it");
  }
  return {};
}

Result<DrafterTimes> read_drafter(const nlohmann::json& json, const std::string& where) {
  FT_RETURN_IF_ERROR(check_keys(json, {"name", "one_pass", "catch_up", "pass"}, where));
  if (!json["name"].is_string()) return invalid_argument(where + ": 'name' must be a string");
  if (!json["one_pass"].is_boolean()) {
    return invalid_argument(where + ": 'one_pass' must be true or false");
  }
  DrafterTimes times;
  times.name = json["name"].get<std::string>();
  times.one_pass = json["one_pass"].get<bool>();
  FT_ASSIGN_OR_RETURN(times.catch_up, read_curve(json["catch_up"], where + ", catch_up"));
  FT_ASSIGN_OR_RETURN(times.pass, read_curve(json["pass"], where + ", pass"));
  return times;
}

Result<VerifyTimes> read_verify(const nlohmann::json& json, const std::string& where, int after) {
  FT_RETURN_IF_ERROR(check_keys(json, {"drafts", "idle", "full"}, where));
  VerifyTimes times;
  const auto& drafts = json["drafts"];
  const bool first = after < 0;
  if (!drafts.is_number_integer() || drafts.get<int64_t>() > kMaxSpeculativeTokens ||
      (first ? drafts != 0 : drafts.get<int64_t>() <= after)) {
    return invalid_argument(where + ": 'drafts' must be 0, then grow, up to " +
                            std::to_string(kMaxSpeculativeTokens) +
                            "; delete the file to measure again");
  }
  times.drafts = drafts.get<int>();
  FT_ASSIGN_OR_RETURN(times.idle, read_curve(json["idle"], where + ", idle"));
  FT_ASSIGN_OR_RETURN(times.full, read_curve(json["full"], where + ", full"));
  if (times.idle.empty() || times.full.empty()) return bad_curve(where, "has an empty curve");
  return times;
}

Status read_context(const nlohmann::json& json, const std::string& where, StepTimes& times) {
  FT_RETURN_IF_ERROR(check_keys(json, {"known_tokens", "picoseconds"}, where));
  const auto fits = [](const nlohmann::json& value, int64_t most) {
    return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= most;
  };
  bool ok = fits(json["known_tokens"], kMaxSize) && json["picoseconds"].is_array();
  for (const auto& pair : ok ? json["picoseconds"] : nlohmann::json::array()) {
    ok = ok && pair.is_array() && pair.size() == 2 && fits(pair[0], kMaxSpeculativeTokens) &&
         fits(pair[1], kMaxPicoseconds) &&
         (times.context.empty() || pair[0].get<int>() > times.context.back().drafts);
    if (ok) times.context.push_back({pair[0].get<int>(), pair[1].get<int64_t>()});
  }
  if (!ok) {
    return invalid_argument(where +
                            ": give 'known_tokens' and pairs [drafts, picoseconds] with "
                            "growing drafts, or delete the file to measure again");
  }
  times.known_tokens = json["known_tokens"].get<int>();
  return {};
}

// The two points around `size`, or the last two where it lies beyond; of two at least, the first
// of which is smaller than `size`.
std::pair<TimeCurve::Point, TimeCurve::Point> neighbours(std::span<const TimeCurve::Point> points,
                                                         int size) {
  const auto high = std::lower_bound(
      points.begin() + 1, points.end() - 1, size,
      [](const TimeCurve::Point& point, int wanted) { return point.size < wanted; });
  return {*std::prev(high), *high};
}

// The value at `at` on the line from (0, a) to (length, b). b - a and length are up to 2^40.
int64_t between(int64_t a, int64_t b, int64_t at, int64_t length) {
  if (length <= 0) return a;
  const auto width = static_cast<int>(std::bit_width(static_cast<uint64_t>(length)));
  const int shift = std::max(width - 20, 0);
  return a + (b - a) * (at >> shift) / (length >> shift);
}

std::string list_of(std::span<const std::string> names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none" : list;
}

void append_curve(std::ostream& text, const std::string& title, const char* unit,
                  const TimeCurve& curve) {
  for (const TimeCurve::Point& point : curve.points()) {
    text << std::left << std::setw(28) << title << std::right << std::setw(7) << point.size << ' '
         << std::left << std::setw(10) << unit << std::right << std::setw(8) << point.ns / 1000000
         << '.' << std::setfill('0') << std::setw(3) << point.ns / 1000 % 1000 << std::setfill(' ')
         << " ms\n";
  }
}

}  // namespace

void TimeCurve::add(int size, int64_t ns) {
  FT_CHECK(size > 0 && ns >= 0 && (points_.empty() || size > points_.back().size));
  if (!points_.empty()) ns = std::max(ns, points_.back().ns);
  points_.push_back({size, std::min(ns, kMaxNs)});
}

int64_t TimeCurve::at(int size) const {
  if (size <= 0 || points_.empty()) return 0;
  if (size <= points_.front().size || points_.size() == 1) return points_.front().ns;
  const auto [low, high] = neighbours(points_, size);
  const int64_t ns = low.ns + (high.ns - low.ns) * (size - low.size) / (high.size - low.size);
  return std::min(ns, kMaxNs);
}

int64_t StepTimes::draft_ns(int index, const DraftUse& use) const {
  const DrafterTimes& times = drafters[static_cast<size_t>(index)];
  const int64_t first = times.catch_up.at(use.catch_up_rows);
  if (use.num_passes == 0) return first;
  const int num_passes = times.one_pass ? 1 : use.num_passes - (times.catch_up.empty() ? 0 : 1);
  return first + num_passes * times.pass.at(use.num_spans);
}

int64_t StepTimes::step_ns(int num_seqs, int64_t granted, int64_t live) const {
  if (verify.empty() || num_seqs <= 0) {
    return target.at(static_cast<int>(std::min<int64_t>(num_seqs + live, kMaxSize)));
  }
  size_t high = 0;
  while (high + 1 < verify.size() && granted > int64_t{verify[high].drafts} * num_seqs) ++high;
  const VerifyTimes& above = verify[high];
  const VerifyTimes& below = verify[high == 0 ? 0 : high - 1];
  const int64_t most = int64_t{above.drafts} * num_seqs;
  // More room never costs less, though each curve has its own shape between the measured sizes.
  const auto between_drafts = [&](int64_t a, int64_t b) {
    return between_rows({num_seqs + int64_t{below.drafts} * num_seqs, a},
                        {num_seqs + most, std::max(a, b)}, num_seqs + std::min(granted, most));
  };
  const int64_t idle = between_drafts(verify_ns(below.idle, num_seqs, below.drafts),
                                      verify_ns(above.idle, num_seqs, above.drafts));
  const int64_t full = between_drafts(verify_ns(below.full, num_seqs, below.drafts),
                                      verify_ns(above.full, num_seqs, above.drafts));
  return between(idle, std::max(idle, full), std::min(live, granted), granted);
}

int64_t StepTimes::between_rows(RowTime low, RowTime high, int64_t rows) const {
  const auto target_ns = [&](int64_t size) {
    return target.at(static_cast<int>(std::min<int64_t>(size, kMaxSize)));
  };
  const int64_t from = target_ns(low.rows);
  const int64_t length = target_ns(high.rows) - from;
  if (length <= 0) return between(low.ns, high.ns, rows - low.rows, high.rows - low.rows);
  return between(low.ns, high.ns, target_ns(rows) - from, length);
}

int64_t StepTimes::verify_ns(const TimeCurve& curve, int num_seqs, int drafts) const {
  const auto points = curve.points();
  const bool between_points =
      !points.empty() && num_seqs > points.front().size && num_seqs <= points.back().size;
  if (!between_points) return curve.at(num_seqs);
  const auto [low, high] = neighbours(points, num_seqs);
  const int64_t each = drafts + 1;
  return between_rows({low.size * each, low.ns}, {high.size * each, high.ns}, num_seqs * each);
}

int64_t StepTimes::context_ns(int num_seqs, int drafts, int64_t num_tokens) const {
  if (context.empty()) return 0;
  const int64_t beyond = num_tokens - int64_t{num_seqs} * known_tokens;
  size_t high = 0;
  while (high + 1 < context.size() && drafts > context[high].drafts) ++high;
  const ContextTime& above = context[high];
  const ContextTime& below = context[high == 0 ? 0 : high - 1];
  const int length = above.drafts - below.drafts;
  const int64_t each = between(below.picoseconds, above.picoseconds,
                               std::clamp(drafts - below.drafts, 0, length), length);
  return std::clamp<int64_t>(beyond, 0, kMaxTokens) * each / 1000;
}

std::vector<int32_t> StepTimes::row_ns(int num_seqs, int drafts, int max_rows) const {
  std::vector<int32_t> all(static_cast<size_t>(max_rows) + 1);
  const int64_t room = int64_t{num_seqs} * drafts;
  const int64_t idle = step_ns(num_seqs, room, 0);
  const int64_t full = step_ns(num_seqs, room, room);
  for (int rows = 1; rows <= max_rows; ++rows) {
    const int64_t ns =
        verify.empty() ? target.at(rows) : between(idle, full, rows - num_seqs, room);
    all[static_cast<size_t>(rows)] =
        static_cast<int32_t>(std::clamp<int64_t>(ns, 0, std::numeric_limits<int32_t>::max()));
  }
  return all;
}

std::string StepTimes::text() const {
  std::ostringstream text;
  append_curve(text, "target step", "rows", target);
  for (const VerifyTimes& times : verify) {
    const std::string room = std::to_string(times.drafts) + " drafts each";
    append_curve(text, room, "sequences", times.full);
    if (times.drafts > 0) append_curve(text, room + ", missing", "sequences", times.idle);
  }
  for (const ContextTime& each : context) {
    text << std::left << std::setw(28) << std::to_string(each.drafts) + " drafts each"
         << "1000 tokens of context " << each.picoseconds / 1000 << " us\n";
  }
  for (const DrafterTimes& drafter : drafters) {
    append_curve(text, drafter.name + " catch-up", "rows", drafter.catch_up);
    append_curve(text, drafter.name + (drafter.one_pass ? " proposal" : " pass"), "sequences",
                 drafter.pass);
  }
  return text.str();
}

std::string step_times_to_json(const StepTimes& times) {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  if (!times.measured_on.empty()) json["measured_on"] = times.measured_on;
  json["target"] = curve_json(times.target);
  json["verify"] = nlohmann::ordered_json::array();
  for (const VerifyTimes& each : times.verify) {
    nlohmann::ordered_json entry;
    entry["drafts"] = each.drafts;
    entry["idle"] = curve_json(each.idle);
    entry["full"] = curve_json(each.full);
    json["verify"].push_back(std::move(entry));
  }
  json["context"]["known_tokens"] = times.known_tokens;
  json["context"]["picoseconds"] = nlohmann::ordered_json::array();
  for (const ContextTime& each : times.context) {
    json["context"]["picoseconds"].push_back({each.drafts, each.picoseconds});
  }
  json["drafters"] = nlohmann::ordered_json::array();
  for (const DrafterTimes& drafter : times.drafters) {
    nlohmann::ordered_json entry;
    entry["name"] = drafter.name;
    entry["one_pass"] = drafter.one_pass;
    entry["catch_up"] = curve_json(drafter.catch_up);
    entry["pass"] = curve_json(drafter.pass);
    json["drafters"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

Result<StepTimes> parse_step_times(std::string_view json, const std::string& what) {
  FT_ASSIGN_OR_RETURN(const nlohmann::json root, parse_json_object(json, what));
  if (root.contains("format") && root["format"] != kFormat) {
    return invalid_argument(what + " has format " + root["format"].dump() +
                            ", but this build reads " + std::to_string(kFormat) +
                            "; delete the file to measure again");
  }
  FT_RETURN_IF_ERROR(
      check_keys(root, {"format", "target", "verify", "context", "drafters"}, what, "measured_on"));
  if (!root["drafters"].is_array() || root["drafters"].size() > kMaxDrafters) {
    return invalid_argument(what + ": 'drafters' must be a list of at most " +
                            std::to_string(kMaxDrafters));
  }
  StepTimes times;
  if (const auto device = root.find("measured_on"); device != root.end()) {
    if (!device->is_string()) {
      return invalid_argument(what + ": 'measured_on' must be a string");
    }
    times.measured_on = device->get<std::string>();
  }
  FT_ASSIGN_OR_RETURN(times.target, read_curve(root["target"], what + ", target"));
  if (!root["verify"].is_array()) return invalid_argument(what + ": 'verify' must be a list");
  for (const auto& entry : root["verify"]) {
    const std::string where = what + ", verify " + std::to_string(times.verify.size());
    const int after = times.verify.empty() ? -1 : times.verify.back().drafts;
    FT_ASSIGN_OR_RETURN(VerifyTimes each, read_verify(entry, where, after));
    times.verify.push_back(std::move(each));
  }
  FT_RETURN_IF_ERROR(read_context(root["context"], what + ", context", times));
  for (const auto& entry : root["drafters"]) {
    const std::string where = what + ", drafter " + std::to_string(times.drafters.size());
    FT_ASSIGN_OR_RETURN(DrafterTimes drafter, read_drafter(entry, where));
    times.drafters.push_back(std::move(drafter));
  }
  if (times.target.empty()) return bad_curve(what + ", target", "is empty");
  return times;
}

Result<StepTimes> read_step_times(const std::string& path, std::span<const std::string> drafters) {
  const std::string what = "--step-time-table " + path;
  std::error_code error;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, error)) {
    return not_found(what + " cannot be read; name a file, and check its permissions");
  }
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  FT_ASSIGN_OR_RETURN(StepTimes times, parse_step_times(json, what));
  std::vector<std::string> names;
  for (const DrafterTimes& drafter : times.drafters) names.push_back(drafter.name);
  if (!std::equal(names.begin(), names.end(), drafters.begin(), drafters.end())) {
    return invalid_argument(what + " was measured with the drafters " + list_of(names) +
                            ", but configured are " + list_of(drafters) +
                            "; name another file, or delete it to measure again");
  }
  return times;
}

Status write_step_times(const StepTimes& times, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << step_times_to_json(times);
  file.close();
  if (file) return {};
  return invalid_argument("--step-time-table " + path +
                          " cannot be written; name a file in a folder that exists");
}

}  // namespace foretoken
