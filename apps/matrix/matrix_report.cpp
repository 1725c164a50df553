#include "apps/matrix/matrix_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/svg_page.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

MatrixCell cell_of(const CellResult& result) { return read_cell(result.at("cell")).value(); }

std::string plural(size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Why a row has not the attention that it names.
std::string why_it_stands_in(MatrixCell cell) {
  if (cell.stands_in_for.empty()) return {};
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
  text += ", attention " + result.value("attention", "") + why_it_stands_in(cell_of(result));
  if (const int differing = result.value("texts_unlike_without_drafts", 0); differing > 0) {
    text += fmt::format(", {} texts unlike those without drafts (not batch-invariant)", differing);
  }
  if (result.contains("score_gap_to_reference")) {
    text += fmt::format(", log-probabilities within {:.2g} of the CPU's own attention",
                        result["score_gap_to_reference"].get<double>());
  }
  if (const auto resident = result.value("resident_bytes", int64_t{0}); resident > 0) {
    text += fmt::format(", {} MiB resident behind them", resident >> 20);
  }
  text += fmt::format(", {} KiB more when repeated", result["grown_bytes"].get<int64_t>() / 1024);
  return text;
}

std::vector<std::string> columns_of(const CellResult& result, const MatrixFacts& facts) {
  const MatrixCell cell = cell_of(result);
  return {cell.row > 0 ? std::to_string(cell.row) : "",
          cell.architecture,
          cell.drafter.empty() ? "none" : cell.drafter,
          layout_name(cell),
          cell.kv_cache_dtype,
          cell.quantization.empty() ? "none" : cell.quantization,
          cell.graph_mode,
          attention_name(cell),
          status_words(result, facts),
          evidence(result)};
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

const std::vector<std::string> kHeader = {"row",      "model",   "drafter", "layout",
                                          "KV cache", "weights", "graphs",  "attention, named",
                                          "status",   "evidence"};

std::map<std::string, size_t> counts_by_status(const std::vector<CellResult>& results,
                                               const MatrixFacts& facts) {
  std::map<std::string, size_t> counts;
  for (const CellResult& result : results) ++counts[status_words(result, facts)];
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

std::string row_of_page(const CellResult& result, const MatrixFacts& facts) {
  const std::vector<std::string> columns = columns_of(result, facts);
  const std::string& status = columns[columns.size() - 2];
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

}  // namespace

std::string status_words(const CellResult& result, const MatrixFacts& facts) {
  const std::string verdict = result.at("verdict").get<std::string>();
  if (verdict == "unsupported" || verdict == "red") return verdict;
  if (cell_of(result).hardware == "B200" && facts.device.find("B200") == std::string::npos) {
    return "compiled, not run";
  }
  if (verdict == "not run") return verdict;
  // R1's shape has fewer layers and experts.
  const bool at_size = facts.size == "8b" && cell_of(result).architecture == "LlamaForCausalLM";
  return at_size ? "green at size" : "green reduced";
}

std::string matrix_markdown(const std::vector<CellResult>& results,
                            const std::vector<CellResult>& product, const MatrixFacts& facts) {
  std::string text = facts_line(facts) + "\n\n";
  for (const auto& [status, count] : counts_by_status(results, facts)) {
    text += "- " + status + ": " + plural(count, "cell") + "\n";
  }
  const auto line = [&](const std::vector<std::string>& columns) {
    std::string row = "|";
    for (const std::string& column : columns) row += " " + in_table(column) + " |";
    return row + "\n";
  };
  text += "\n" + line(kHeader) + "|";
  for (size_t i = 0; i < kHeader.size(); ++i) text += "---|";
  text += "\n";
  for (const CellResult& result : results) text += line(columns_of(result, facts));
  if (product.empty()) return text;
  text += "\n" + unsupported_line(product) + "\n\n";
  for (const auto& reason : counts_by_reason(product)) {
    text += "- " + share_line(reason, product.size()) + "\n";
  }
  return text;
}

std::string matrix_page(const std::vector<CellResult>& results,
                        const std::vector<CellResult>& product, const MatrixFacts& facts) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>"
      "Foretoken: support matrix</title><style>";
  html += kStyle;
  html += "</style></head><body><h1>Support matrix</h1><p>" +
          bench::markup_text(facts_line(facts)) + "</p><ul>";
  for (const auto& [status, count] : counts_by_status(results, facts)) {
    html += "<li>" + bench::markup_text(status) + ": " + plural(count, "cell") + "</li>";
  }
  html += "</ul><table><tr>";
  for (const std::string& column : kHeader) html += "<th>" + column + "</th>";
  html += "</tr>\n";
  for (const CellResult& result : results) html += row_of_page(result, facts);
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
    Json entry = {{"status", status_words(result, facts)}};
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

}  // namespace foretoken
