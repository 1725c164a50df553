#include <sstream>

#include "config/engine_fields.h"
#include "config/engine_names.h"
#include "config/engine_pages.h"

namespace foretoken {
namespace python_page {

constexpr const char* kHead =
    R"("""The engine's own fields. tools/write_fields writes this file: do not edit it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class EngineFields:
    """What the engine is configured by; None takes its own default."""
)";

// Lines of comment with at most 96 columns.
std::string comment(const std::string& text) {
  constexpr size_t kWidth = 96;
  std::istringstream words(text);
  std::string lines;
  std::string line = "    #";
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kWidth) {
      lines += line + "\n";
      line = "    #";
    }
    line += " " + word;
  }
  return lines + line + "\n";
}

const char* type_of(bool) { return "bool"; }
const char* type_of(int) { return "int"; }
const char* type_of(int64_t) { return "int"; }
const char* type_of(uint64_t) { return "int"; }
const char* type_of(double) { return "float"; }
const char* type_of(const std::string&) { return "str"; }
const char* type_of(const std::vector<int>&) { return "list[int]"; }

// As Python takes it, None aside.
std::string type_of(const EngineField& field) {
  if (field.form == FieldForm::kDtype) return "Any";
  if (field.form == FieldForm::kJson) return "Mapping[str, Any]";
  if (field.form == FieldForm::kLength) return "int | str";
  std::string type;
  const EngineConfig defaults;
  visit_engine_member(field, defaults, [&](const auto& value) { type = type_of(value); });
  return type;
}

std::string default_of(const EngineField& field) {
  const EngineConfig defaults;
  const std::string text = engine_field_text(field, defaults);
  const std::string type = type_of(field);
  if (type == "bool") return text == "1" ? "True" : "False";
  return type == "str" || type == "Any" ? "\"" + text + "\"" : text;
}

std::string declaration(const EngineField& field) {
  std::string help = field.help;
  const bool is_model = field.form == FieldForm::kModel;
  if (field.automatic != nullptr) help += std::string(" (default: ") + field.automatic + ")";
  const bool may_be_none = field.automatic != nullptr && !is_model;
  return comment(with_field_names(help)) + "    " + field.name + ": " + type_of(field) +
         (may_be_none ? " | None = None" : " = " + default_of(field)) + "\n";
}

const char* form_name(FieldForm form) {
  switch (form) {
    case FieldForm::kDtype:
      return "dtype";
    case FieldForm::kJson:
      return "json";
    case FieldForm::kLength:
      return "length";
    default:
      return nullptr;
  }
}

}  // namespace python_page

std::string python_engine_fields() {
  std::string text = python_page::kHead;
  std::string forms;
  std::string graphs;
  for (const EngineField& field : engine_fields()) {
    if ((field.doors & kPython) == 0) continue;
    text += "\n" + python_page::declaration(field);
    const std::string line = std::string("    \"") + field.name + "\"";
    const char* form = python_page::form_name(field.form);
    if (form != nullptr) forms += line + ": \"" + form + "\",\n";
    if (std::string_view(field.group) == "Graphs") graphs += line + ",\n";
  }
  return text +
         "\n\n# Fields whose values are translated on their way to the engine.\nFORMS = {\n" +
         forms + "}\n\n# Fields that compilation_config holds too.\nGRAPH_FIELDS = (\n" + graphs +
         ")\n";
}

}  // namespace foretoken
