#include "spec/cost_table_file.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/comma_list.h"
#include "base/files/json_object.h"
#include "base/files/text_file.h"

namespace foretoken {
namespace {

constexpr int kFormat = 3;
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
    if (size < 1 || size > CostLimits::kMaxSize || ns < 0 || ns > CostLimits::kMaxNs || !follows) {
      return bad_curve(where, "'" + pair.dump() + "' is out of order or out of range");
    }
    curve.add(static_cast<int>(size), ns);
  }
  return curve;
}

// A member of an object of which nothing else than `keys` is known.
Status check_keys(const nlohmann::json& json, std::initializer_list<const char*> keys,
                  const std::string& where, std::initializer_list<const char*> optional = {}) {
  if (!json.is_object()) return invalid_argument(where + " must be a JSON object");
  for (const char* key : keys) {
    if (json.contains(key)) continue;
    return invalid_argument(where + " lacks '" + key + "'; delete the file to measure again");
  }
  for (const auto& [key, value] : json.items()) {
    const auto names_it = [&](const char* k) { return key == k; };
    if (std::ranges::none_of(keys, names_it) && std::ranges::none_of(optional, names_it))
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

Status read_context(const nlohmann::json& json, const std::string& where, CostTable& times) {
  FT_RETURN_IF_ERROR(check_keys(json, {"known_tokens", "picoseconds"}, where));
  const auto fits = [](const nlohmann::json& value, int64_t most) {
    return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= most;
  };
  bool ok = fits(json["known_tokens"], CostLimits::kMaxSize) && json["picoseconds"].is_array();
  for (const auto& pair : ok ? json["picoseconds"] : nlohmann::json::array()) {
    ok = ok && pair.is_array() && pair.size() == 2 && fits(pair[0], kMaxSpeculativeTokens) &&
         fits(pair[1], CostLimits::kMaxPicoseconds) &&
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

Status bad_short(const std::string& where) {
  return invalid_argument(where +
                          ": give 'known_tokens' below those of the context, 'steps' with growing "
                          "drafts, as many 'drafters' as the table has, and shares as pairs [size, "
                          "share] with growing sizes and shares of 1 to 65536, or delete the file "
                          "to measure again");
}

bool is_within(const nlohmann::json& value, int64_t least, int64_t most) {
  return value.is_number_integer() && value.get<int64_t>() >= least && value.get<int64_t>() <= most;
}

// False where they are no shares.
bool read_shares(const nlohmann::json& json, TimeShares* shares) {
  if (!json.is_array()) return false;
  for (const auto& pair : json) {
    const int64_t least = shares->empty() ? 1 : shares->points().back().size + 1;
    if (!pair.is_array() || pair.size() != 2 || !is_within(pair[0], least, CostLimits::kMaxSize) ||
        !is_within(pair[1], 1, TimeShares::kOne)) {
      return false;
    }
    shares->add(pair[0].get<int>(), pair[1].get<int64_t>());
  }
  return true;
}

Status read_short_steps(const nlohmann::json& json, const std::string& where, CostTable& times) {
  if (!json.is_array()) return bad_short(where);
  for (const auto& entry : json) {
    FT_RETURN_IF_ERROR(check_keys(entry, {"drafts", "shares"}, where));
    const int64_t least = times.short_steps.empty() ? 0 : times.short_steps.back().drafts + 1;
    if (!is_within(entry["drafts"], least, kMaxSpeculativeTokens)) return bad_short(where);
    ShortTime& each = times.short_steps.emplace_back();
    each.drafts = entry["drafts"].get<int>();
    if (!read_shares(entry["shares"], &each.shares)) return bad_short(where);
  }
  return {};
}

// Tables of builds that measured no short contexts have none.
Status read_short(const nlohmann::json& json, const std::string& where, CostTable& times) {
  FT_RETURN_IF_ERROR(check_keys(json, {"known_tokens", "steps", "drafters"}, where));
  const auto& drafters = json["drafters"];
  if (!is_within(json["known_tokens"], 1, times.known_tokens - 1) || !drafters.is_array() ||
      drafters.size() != times.drafters.size()) {
    return bad_short(where);
  }
  times.short_tokens = json["known_tokens"].get<int>();
  FT_RETURN_IF_ERROR(read_short_steps(json["steps"], where, times));
  for (size_t i = 0; i < drafters.size(); ++i) {
    FT_RETURN_IF_ERROR(check_keys(drafters[i], {"catch_up", "pass"}, where));
    DrafterTimes& drafter = times.drafters[i];
    if (!read_shares(drafters[i]["catch_up"], &drafter.short_catch_up) ||
        !read_shares(drafters[i]["pass"], &drafter.short_pass)) {
      return bad_short(where);
    }
  }
  return {};
}

nlohmann::ordered_json shares_json(const TimeShares& shares) {
  auto points = nlohmann::ordered_json::array();
  for (const TimeShares::Point& point : shares.points()) {
    points.push_back({point.size, point.share});
  }
  return points;
}

nlohmann::ordered_json short_json(const CostTable& times) {
  nlohmann::ordered_json json;
  json["known_tokens"] = times.short_tokens;
  json["steps"] = nlohmann::ordered_json::array();
  for (const ShortTime& each : times.short_steps) {
    json["steps"].push_back({{"drafts", each.drafts}, {"shares", shares_json(each.shares)}});
  }
  json["drafters"] = nlohmann::ordered_json::array();
  for (const DrafterTimes& drafter : times.drafters) {
    json["drafters"].push_back({{"catch_up", shares_json(drafter.short_catch_up)},
                                {"pass", shares_json(drafter.short_pass)}});
  }
  return json;
}

std::string list_of(std::span<const std::string> names) {
  return names.empty() ? "none" : comma_list(names);
}

}  // namespace

std::string cost_table_to_json(const CostTable& times) {
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
  if (times.short_tokens > 0) json["short"] = short_json(times);
  return json.dump(1) + "\n";
}

Result<CostTable> parse_cost_table(std::string_view json, const std::string& what) {
  FT_ASSIGN_OR_RETURN(const nlohmann::json root, parse_json_object(json, what));
  if (root.contains("format") && root["format"] != kFormat) {
    return invalid_argument(what + " has format " + root["format"].dump() +
                            ", but this build reads " + std::to_string(kFormat) +
                            "; delete the file to measure again");
  }
  FT_RETURN_IF_ERROR(check_keys(root, {"format", "target", "verify", "context", "drafters"}, what,
                                {"measured_on", "short"}));
  if (!root["drafters"].is_array() || root["drafters"].size() > kMaxDrafters) {
    return invalid_argument(what + ": 'drafters' must be a list of at most " +
                            std::to_string(kMaxDrafters));
  }
  CostTable times;
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
  if (root.contains("short")) {
    FT_RETURN_IF_ERROR(read_short(root["short"], what + ", short", times));
  }
  if (times.target.empty()) return bad_curve(what + ", target", "is empty");
  return times;
}

Result<CostTable> read_cost_table(const std::string& path, std::span<const std::string> drafters,
                                  std::string what) {
  if (what.empty()) what = "--step-time-table " + path;
  const Result<std::string> json = read_text_file(path);
  if (!json.ok()) {
    return not_found(what + " cannot be read; name a file, and check its permissions");
  }
  FT_ASSIGN_OR_RETURN(CostTable times, parse_cost_table(json.value(), what));
  std::vector<std::string> names;
  for (const DrafterTimes& drafter : times.drafters) names.push_back(drafter.name);
  if (!std::equal(names.begin(), names.end(), drafters.begin(), drafters.end())) {
    return invalid_argument(what + " was measured with the drafters " + list_of(names) +
                            ", but configured are " + list_of(drafters) +
                            "; name another file, or delete it to measure again");
  }
  return times;
}

Status write_cost_table(const CostTable& times, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << cost_table_to_json(times);
  file.close();
  if (file) return {};
  return invalid_argument("--step-time-table " + path +
                          " cannot be written; name a file in a folder that exists");
}

}  // namespace foretoken
