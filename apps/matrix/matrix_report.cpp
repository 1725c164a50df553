#include "apps/matrix/matrix_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "apps/matrix/matrix_models.h"
#include "base/files/json_object.h"
#include "bench/svg_page.h"
#include "device/known_devices.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

MatrixCell cell_of(const CellResult& result) { return read_cell(result.at("cell")).value(); }

std::string plural(size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Why a row has not the attention that it names.
std::string why_it_stands_in(const CellResult& result) {
  MatrixCell cell = cell_of(result);
  if (cell.stands_in_for.empty()) return {};
  if (result.contains("stands_in_because")) {
    return " (" + result["stands_in_because"].get<std::string>() + ")";
  }
  cell.attention = cell.stands_in_for;
  const Status status = check_cell(cell);
  return status.ok() ? "" : " (" + status.message() + ")";
}

std::string evidence(const CellResult& result) {
  if (result.contains("reason")) return result["reason"].get<std::string>();
  if (!result.contains("num_prompts")) return "";
  std::string text = plural(result["num_prompts"].get<size_t>(), "prompt");
  if (result.contains("acceptance")) {
    text += fmt::format(", {} of {} drafts accepted", result["num_accepted_tokens"].get<int64_t>(),
                        result["num_draft_tokens"].get<int64_t>());
  }
  text += ", attention " + result.value("attention", "") + why_it_stands_in(result);
  if (const int differing = result.value("texts_unlike_without_drafts", 0); differing > 0) {
    text += fmt::format(", {} texts unlike those without drafts (not batch-invariant)", differing);
  }
  if (result.contains("score_gap_to_reference")) {
    text += fmt::format(", log-probabilities within {:.2g} of the CPU's own attention",
                        result["score_gap_to_reference"].get<double>());
  }
  if (result.contains("score_gap_to_portable")) {
    text += fmt::format(", {}within {:.2g} of its portable partner's",
                        result.contains("score_gap_to_reference") ? "" : "log-probabilities ",
                        result["score_gap_to_portable"].get<double>());
  }
  if (const auto resident = result.value("resident_bytes", int64_t{0}); resident > 0) {
    text += fmt::format(", {} MiB resident behind them", resident >> 20);
  }
  text += fmt::format(", {} KiB more when repeated", result["grown_bytes"].get<int64_t>() / 1024);
  return text;
}

using Columns = std::vector<std::string>;

// The status is the last but one.
Columns columns_of(const MatrixCell& cell, const std::string& status, const std::string& evidence) {
  return {cell.row > 0 ? std::to_string(cell.row) : "",
          cell.architecture,
          cell.drafter.empty() ? "none" : cell.drafter,
          layout_name(cell),
          cell.kv_cache_dtype,
          cell.quantization.empty() ? "none" : cell.quantization,
          cell.graph_mode,
          attention_name(cell),
          status,
          evidence};
}

const std::string& status_of(const Columns& columns) { return columns[columns.size() - 2]; }

std::vector<Columns> rows_of(const std::vector<CellResult>& results, const MatrixFacts& facts) {
  std::vector<Columns> rows;
  for (const CellResult& result : results) {
    rows.push_back(columns_of(cell_of(result), status_words(result, facts), evidence(result)));
  }
  return rows;
}

// Expressions and messages may hold what ends a column or a row.
std::string in_table(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

const Columns kHeader = {"row",     "model",  "drafter",          "layout", "KV cache",
                         "weights", "graphs", "attention, named", "status", "evidence"};

std::map<std::string, size_t> counts_by_status(const std::vector<Columns>& rows) {
  std::map<std::string, size_t> counts;
  for (const Columns& row : rows) ++counts[status_of(row)];
  return counts;
}

// Sentences without what differs from cell to cell would be fewer; as they are they can be looked
// up. Most frequent first.
std::vector<std::pair<std::string, size_t>> counts_by_reason(const std::vector<CellResult>& all) {
  std::map<std::string, size_t> counts;
  for (const CellResult& result : all) {
    if (result["verdict"] == "unsupported") ++counts[result["reason"].get<std::string>()];
  }
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::string facts_line(const MatrixFacts& facts) {
  return fmt::format("foretoken {} on {}, {}; checkpoints: {}.", facts.version, facts.device,
                     facts.date, facts.size);
}

std::string share_line(const std::pair<std::string, size_t>& reason, size_t all) {
  return fmt::format(
      "{:.1f} %: {}",
      100.0 * static_cast<double>(reason.second) / static_cast<double>(std::max<size_t>(all, 1)),
      reason.first);
}

std::string unsupported_line(const std::vector<CellResult>& product) {
  const auto count = std::count_if(product.begin(), product.end(), [](const CellResult& result) {
    return result["verdict"] == "unsupported";
  });
  return fmt::format("{} of {} of all parts do not go together ({:.1f} %):", count,
                     plural(product.size(), "combination"),
                     100.0 * static_cast<double>(count) / static_cast<double>(product.size()));
}

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em;"
    "color-scheme:light dark}table{border-collapse:collapse;width:100%}td,th{padding:.3em .6em;"
    "text-align:left;border-bottom:1px solid #8884;vertical-align:top}"
    ".green{color:#138a36}.red{color:#c62828;font-weight:600}code{font-size:12px}";

std::string row_of_page(const CellResult& result, const Columns& columns) {
  const std::string& status = status_of(columns);
  const std::string colour = status.substr(0, status.find(' '));
  std::string html = "<tr>";
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool is_status = i + 2 == columns.size();
    html += is_status ? "<td class=\"" + colour + "\">" : "<td>";
    html += bench::markup_text(columns[i]);
    if (i + 1 == columns.size() && result.contains("ops")) {
      html += "<br><code>ops: " + bench::markup_text(result["ops"].dump()) + "</code>";
    }
    if (i + 1 == columns.size() && result.contains("command")) {
      html += "<br><code>" + bench::markup_text(result["command"].get<std::string>()) + "</code>";
    }
    html += "</td>";
  }
  return html + "</tr>\n";
}

std::string rows_markdown(const std::vector<Columns>& rows, const MatrixFacts& facts) {
  std::string text = facts_line(facts) + "\n";
  if (rows.empty()) return text;
  text += "\n";
  for (const auto& [status, count] : counts_by_status(rows)) {
    text += "- " + status + ": " + plural(count, "cell") + "\n";
  }
  const auto line = [&](const Columns& columns) {
    std::string row = "|";
    for (const std::string& column : columns) row += " " + in_table(column) + " |";
    return row + "\n";
  };
  text += "\n" + line(kHeader) + "|";
  for (size_t i = 0; i < kHeader.size(); ++i) text += "---|";
  text += "\n";
  for (const Columns& row : rows) text += line(row);
  return text;
}

// The texts of those names; nothing where one is none.
std::optional<std::vector<std::string>> texts_of(const Json& object,
                                                 const std::vector<const char*>& names) {
  std::vector<std::string> texts;
  for (const char* name : names) {
    if (!object.is_object() || !object.contains(name) || !object[name].is_string()) return {};
    texts.push_back(object[name].get<std::string>());
  }
  return texts;
}

}  // namespace

std::string status_words(const CellResult& result, const MatrixFacts& facts) {
  const std::string verdict = result.at("verdict").get<std::string>();
  if (verdict == "unsupported" || verdict == "red") return verdict;
  const MatrixCell cell = cell_of(result);
  if (!runs_kernels_of(cell.hardware, facts.device)) return "compiled, not run";
  if (verdict == "not run") return verdict;
  const MatrixModel* model = find_matrix_model(cell.architecture);
  const bool at_size = model != nullptr && model->whole_size == facts.size;
  return at_size ? "green at size" : "green reduced";
}

std::string matrix_markdown(const std::vector<CellResult>& results,
                            const std::vector<CellResult>& product, const MatrixFacts& facts) {
  std::string text = rows_markdown(rows_of(results, facts), facts);
  if (product.empty()) return text;
  text += "\n" + unsupported_line(product) + "\n\n";
  for (const auto& reason : counts_by_reason(product)) {
    text += "- " + share_line(reason, product.size()) + "\n";
  }
  return text;
}

std::string matrix_page(const std::vector<CellResult>& results,
                        const std::vector<CellResult>& product, const MatrixFacts& facts) {
  const std::vector<Columns> rows = rows_of(results, facts);
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>"
      "Foretoken: support matrix</title><style>";
  html += kStyle;
  html += "</style></head><body><h1>Support matrix</h1><p>" +
          bench::markup_text(facts_line(facts)) + "</p><ul>";
  for (const auto& [status, count] : counts_by_status(rows)) {
    html += "<li>" + bench::markup_text(status) + ": " + plural(count, "cell") + "</li>";
  }
  html += "</ul><table><tr>";
  for (const std::string& column : kHeader) html += "<th>" + column + "</th>";
  html += "</tr>\n";
  for (size_t i = 0; i < rows.size(); ++i) html += row_of_page(results[i], rows[i]);
  html += "</table>";
  if (!product.empty()) {
    html += "<h2>What does not go together</h2><p>" + unsupported_line(product) + "</p><ul>";
    for (const auto& reason : counts_by_reason(product)) {
      html += "<li>" + bench::markup_text(share_line(reason, product.size())) + "</li>";
    }
    html += "</ul>";
  }
  return html + "</body></html>\n";
}

Json matrix_json(const std::vector<CellResult>& results, const std::vector<CellResult>& product,
                 const MatrixFacts& facts) {
  Json cells = Json::array();
  for (const CellResult& result : results) {
    Json entry = {{"status", status_words(result, facts)}, {"evidence", evidence(result)}};
    entry.update(result);
    cells.push_back(std::move(entry));
  }
  Json reasons = Json::array();
  for (const auto& [reason, count] : counts_by_reason(product)) {
    reasons.push_back({{"reason", reason}, {"cells", count}});
  }
  return {{"version", facts.version}, {"device", facts.device}, {"date", facts.date},
          {"size", facts.size},       {"cells", cells},         {"combinations", product.size()},
          {"unsupported", reasons}};
}

Result<std::string> reprinted_report(const std::string& text, const std::string& what) {
  FT_ASSIGN_OR_RETURN(const Json report, parse_ordered_json_object(text, what));
  const Status other =
      invalid_argument(what + " is no report of foretoken matrix; give the .json of its --output");
  const auto facts = texts_of(report, {"version", "device", "date", "size"});
  if (!facts || !report.contains("cells") || !report["cells"].is_array()) return other;
  std::vector<Columns> rows;
  for (const Json& entry : report["cells"]) {
    const auto said = texts_of(entry, {"status", "evidence"});
    if (!said || !entry.contains("cell")) return other;
    const Result<MatrixCell> cell = read_cell(entry["cell"]);
    if (!cell.ok()) return other;
    rows.push_back(columns_of(cell.value(), (*said)[0], (*said)[1]));
  }
  return rows_markdown(rows, {(*facts)[0], (*facts)[1], (*facts)[2], (*facts)[3]});
}

}  // namespace foretoken
