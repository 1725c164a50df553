#include "apps/options/engine_flags.h"

#include <charconv>

#include "apps/flags/file_validators.h"
#include "apps/flags/flag_table.h"
#include "apps/options/engine_options.h"

namespace foretoken {
namespace engine_flags {

std::string help_of(const EngineField& field) {
  const std::string help = field.help;
  return field.automatic == nullptr ? help : help + " (default: " + field.automatic + ")";
}

// "1,2,4", "[1, 2, 4]" or "1" "2" "4".
std::vector<int> numbers_of(const std::string& flag, const std::vector<std::string>& words) {
  std::vector<int> numbers;
  for (std::string word : words) {
    std::erase_if(word, [](char c) { return c == '[' || c == ']' || c == ' '; });
    for (size_t begin = 0; begin < word.size();) {
      const size_t end = std::min(word.find(',', begin), word.size());
      int& number = numbers.emplace_back(0);
      const auto [rest, error] = std::from_chars(word.data() + begin, word.data() + end, number);
      if (error != std::errc() || rest != word.data() + end) {
        throw CLI::ValidationError(flag + ": '" + word.substr(begin, end - begin) +
                                   "' is no whole number; give numbers like 1,2,4,8");
      }
      begin = end + 1;
    }
  }
  return numbers;
}

CLI::Option* add(CLI::App& app, const EngineField& field, const std::string& name, bool& value) {
  return app.add_flag(name + ",!--no-" + name.substr(2), value, help_of(field));
}

CLI::Option* add(CLI::App& app, const EngineField& field, const std::string& flag,
                 std::vector<int>& value) {
  return app
      .add_option_function<std::vector<std::string>>(
          flag,
          [&value, flag](const std::vector<std::string>& words) {
            value = numbers_of(flag, words);
          },
          help_of(field))
      ->type_name("N,N,...");
}

template <class Value>
CLI::Option* add(CLI::App& app, const EngineField& field, const std::string& names, Value& value) {
  CLI::Option* option = app.add_option(names, value, help_of(field));
  if (field.automatic == nullptr) option->capture_default_str();
  return option;
}

void check_number(CLI::Option* option, const EngineField& field) {
  if (field.form == FieldForm::kChoice) {
    std::vector<int64_t> numbers;
    for (const std::string& choice : field_choices(field.choices)) {
      numbers.push_back(std::stoll(choice));
    }
    option->check(CLI::IsMember(numbers));
  } else if (field.form == FieldForm::kLength) {
    option->transform(human_integer_or_auto())->type_name("N[k|m|g|K|M|G]|auto");
  } else if (field.nearest) {
    option->check(at_least(field.range.low));
  } else {
    option->check(within(field.range.low, field.range.high));
  }
  if (field.form == FieldForm::kCount) {
    option->transform(human_integer())->type_name("N[k|m|g|K|M|G]");
  }
}

void check_text(CLI::Option* option, const EngineField& field) {
  const std::vector<std::string> choices = field_choices(field.choices);
  switch (field.form) {
    case FieldForm::kChoice:
      option->check(CLI::IsMember(choices));
      break;
    case FieldForm::kListed:
    case FieldForm::kDtype:
      if (!choices.empty()) option->type_name(choices_type(choices));
      break;
    case FieldForm::kJson:
      option->type_name("JSON");
      break;
    case FieldForm::kFile:
      option->type_name(kFileType);
      break;
    case FieldForm::kNewFile:
      option->type_name(kFileType)->check(file_in_a_folder());
      break;
    case FieldForm::kFolder:
      option->type_name(kFolderType);
      break;
    case FieldForm::kFolderOrOff:
      option->type_name("FOLDER|off");
      break;
    case FieldForm::kModel:
      option->type_name(kModelType);
      break;
    case FieldForm::kTemplate:
      option->type_name(std::string("TEXT|") + kFileType);
      break;
    case FieldForm::kPlain:
    case FieldForm::kCount:
    case FieldForm::kLength:
      break;
  }
}

void check(CLI::Option*, const EngineField&, bool) {}
void check(CLI::Option*, const EngineField&, double) {}
void check(CLI::Option*, const EngineField&, const std::vector<int>&) {}
void check(CLI::Option* option, const EngineField&, uint64_t) { option->check(seed_number()); }
void check(CLI::Option* option, const EngineField& field, int64_t) { check_number(option, field); }
void check(CLI::Option* option, const EngineField& field, int) { check_number(option, field); }
void check(CLI::Option* option, const EngineField& field, const std::string&) {
  check_text(option, field);
}

}  // namespace engine_flags

CLI::Option* add_engine_flag(CLI::App& app, const EngineField& field, EngineConfig& config,
                             bool is_argument) {
  const std::string names = engine_flag(field) + (is_argument ? std::string(",") + field.name : "");
  CLI::Option* option = nullptr;
  visit_engine_member(field, config, [&](auto& value) {
    option = engine_flags::add(app, field, names, value);
    engine_flags::check(option, field, value);
  });
  return option->group(field.group);
}

std::vector<const EngineField*> command_line_fields() {
  std::vector<const EngineField*> fields;
  for (const EngineField& field : engine_fields()) {
    if ((field.doors & kCommandLine) != 0) fields.push_back(&field);
  }
  return fields;
}

}  // namespace foretoken
