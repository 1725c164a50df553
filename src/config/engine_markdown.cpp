#include <climits>
#include <cstring>
#include <type_traits>

#include "config/engine_drafter_fields.h"
#include "config/engine_fields.h"
#include "config/engine_foreign_names.h"
#include "config/engine_names.h"
#include "config/engine_pages.h"
#include "config/engine_variables.h"

namespace foretoken {
namespace markdown_page {

// With a backslash before each of `special`.
std::string escape(const std::string& text, const char* special) {
  std::string escaped;
  for (const char c : text) {
    if (std::strchr(special, c) != nullptr) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// For a cell of a table.
std::string cell(const std::string& text) { return escape(text, "|*<"); }

std::string code(const std::string& text) { return "`" + escape(text, "|") + "`"; }

// "`a`, `b`" of "a|b".
std::string code_list(const char* words) {
  std::string list;
  for (const std::string& word : field_choices(words)) {
    list += (list.empty() ? "" : ", ") + code(word);
  }
  return list;
}

std::string range_text(const FieldRange& range, bool excludes_low) {
  const std::string low = std::to_string(range.low);
  if (range.low == INT_MIN) return "a number";
  if (range.high >= INT_MAX) return "from " + low;
  return (excludes_low ? "above " : "") + low + " to " + std::to_string(range.high);
}

std::string values_of(const EngineField&, bool) { return "on, off"; }
std::string values_of(const EngineField& field, double) { return range_text(field.range, true); }
std::string values_of(const EngineField&, const std::vector<int>&) { return "numbers"; }
std::string values_of(const EngineField& field, const std::string&) {
  switch (field.form) {
    case FieldForm::kJson:
      return "JSON";
    case FieldForm::kFile:
    case FieldForm::kNewFile:
      return "a file";
    case FieldForm::kFolder:
      return "a folder";
    case FieldForm::kFolderOrOff:
      return "a folder, `off`";
    default:
      return *field.choices == '\0' ? "a text" : code_list(field.choices);
  }
}
template <class Number>
std::string values_of(const EngineField& field, Number) {
  const std::string others = field.nearest ? "; of others the nearest" : "";
  if (*field.choices != '\0') return code_list(field.choices) + others;
  const std::string range = range_text(field.range, false) + others;
  return field.form == FieldForm::kLength ? range + ", `auto`" : range;
}

std::string default_of(const EngineField& field, const EngineConfig& defaults) {
  if (field.automatic != nullptr) return cell(field.automatic);
  std::string text = engine_field_text(field, defaults);
  visit_engine_member(field, defaults, [&](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) text = value ? "on" : "off";
  });
  return code(text);
}

std::string row_of(const EngineField& field) {
  const EngineConfig defaults;
  std::string values;
  visit_engine_member(field, defaults,
                      [&](const auto& value) { values = values_of(field, value); });
  const std::string flag = (field.doors & kCommandLine) != 0 ? code(engine_flag(field)) : "";
  const std::string python = (field.doors & kPython) != 0 ? code(field.name) : "";
  const bool alike = field.agreement != FieldAgreement::kNone;
  return "| " + flag + " | " + python + " | " + values + " | " + default_of(field, defaults) +
         " | " + (alike ? "yes" : "") + " | " + cell(field.help) + " |\n";
}

std::string row_of(const DrafterField& field) {
  const std::string value = drafter_field_text(field, SpeculativeConfig());
  const bool is_given = !value.empty() && value != "0";
  return "| " + code(field.name) + " | " + code_list(field.choices) + " | " +
         (is_given ? code(value) : "") + " | " + (field.is_engine_wide ? "yes" : "") + " | " +
         cell(field.help) + " |\n";
}

std::string foreign_row(const ForeignFlag& flag) {
  std::string here;
  for (const char* use : flag.uses) {
    if (use != nullptr) here += (here.empty() ? "" : ", ") + code(use);
  }
  if (*flag.note != '\0') here += (here.empty() ? "" : "; ") + cell(flag.note);
  return "| " + code_list(flag.names) + " | " + here + " |\n";
}

}  // namespace markdown_page

std::string markdown_engine_fields() {
  std::string text;
  std::string_view group;
  for (const EngineField& field : engine_fields()) {
    if (field.doors == kProgramOnly) continue;
    if (group != field.group) {
      group = field.group;
      text += (text.empty() ? "## " : "\n## ") + std::string(group) +
              "\n\n| flag | in Python | values | default | alike on all ranks | meaning |\n"
              "|---|---|---|---|---|---|\n";
    }
    text += markdown_page::row_of(field);
  }
  text +=
      "\n## Drafters\n\nFields of an entry of `--speculative-config` (`speculative_config`); those "
      "of "
      "single methods: `foretoken inspect --json`.\n\n"
      "| field | values | default | of all drafters | meaning |\n|---|---|---|---|---|\n";
  for (const DrafterField& field : drafter_fields()) text += markdown_page::row_of(field);
  return text;
}

std::string markdown_engine_names() {
  std::string text =
      "## vLLM's names without a field here\n\n"
      "| name | where | silent values | others | why |\n|---|---|---|---|---|\n";
  for (const VllmName& name : vllm_names()) {
    const char* where = name.doors == kEveryDoor     ? "both"
                        : name.doors == kCommandLine ? "flag"
                                                     : "Python";
    std::string others = name.refused ? "an error" : "a warning";
    const std::string passed_over = markdown_page::code_list(name.passed_over);
    if (!passed_over.empty()) others += ", but for " + passed_over + " a warning";
    text += "| " + markdown_page::code(name.name) + " | " + where + " | " +
            markdown_page::code_list(name.harmless) + " | " + others + " | " +
            markdown_page::cell(name.why) + " |\n";
  }
  text += "\nOf `--compilation-config` these have none, since nothing is compiled: ";
  std::string compiler;
  for (const char* field : vllm_compiler_fields()) {
    compiler += (compiler.empty() ? "" : ", ") + markdown_page::code(field);
  }
  text += compiler + ".\n";
  text +=
      "\n## vLLM's fields of a drafter without one here\n\n"
      "| field | silent value | others |\n|---|---|---|\n";
  for (const RefusedDrafterField& field : refused_drafter_fields()) {
    text += "| " + markdown_page::code(field.name) + " | " + markdown_page::code(field.harmless) +
            (field.warned ? " | a warning: it " : " | an error: it ") +
            markdown_page::cell(field.why) + " |\n";
  }
  text +=
      "\n## Flags of llama.cpp, SGLang and TensorRT-LLM\n\n"
      "`%` stands for the value. The second is for commands that have not the flags of the "
      "first.\n\n| flags | here |\n|---|---|\n";
  for (const ForeignFlag& flag : foreign_flag_table()) text += markdown_page::foreign_row(flag);
  text +=
      "\n## Variables of the environment that have no effect\n\n| variable | instead "
      "|\n|---|---|\n";
  for (const ForeignVariable& variable : foreign_variables()) {
    text += "| " + markdown_page::code(variable.name) + " | " +
            markdown_page::cell(variable.instead) + " |\n";
  }
  return text;
}

}  // namespace foretoken
