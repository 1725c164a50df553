#include "apps/options/graph_options.h"

#include <algorithm>
#include <charconv>

#include "apps/flags/flag_table.h"
#include "apps/flags/vllm_flag_table.h"
#include "base/log.h"
#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kGraphFlag = "--compilation-config";

// Fields of vLLM that are about torch.compile, of which there is none here.
constexpr const char* kCompilerFields[] = {"mode",
                                           "level",
                                           "backend",
                                           "custom_ops",
                                           "splitting_ops",
                                           "compile_sizes",
                                           "compile_mm_encoder",
                                           "inductor_compile_config",
                                           "inductor_passes",
                                           "use_inductor",
                                           "use_inductor_graph_partition",
                                           "pass_config",
                                           "cache_dir",
                                           "debug_dump_path",
                                           "dynamic_shapes_config",
                                           "cudagraph_num_of_warmups",
                                           "cudagraph_copy_inputs",
                                           "cudagraph_specialize_lora"};

// "1,2,4", "[1, 2, 4]" or "1" "2" "4".
Result<std::vector<int>> parse_sizes(const std::vector<std::string>& words) {
  std::vector<int> sizes;
  for (std::string word : words) {
    const auto is_cover = [](char c) { return c == '[' || c == ']' || c == ' '; };
    std::erase_if(word, is_cover);
    for (size_t begin = 0; begin < word.size();) {
      const size_t end = std::min(word.find(',', begin), word.size());
      int& size = sizes.emplace_back(0);
      const auto [rest, error] = std::from_chars(word.data() + begin, word.data() + end, size);
      if (error != std::errc() || rest != word.data() + end) {
        return invalid_argument("--cudagraph-capture-sizes: '" + word.substr(begin, end - begin) +
                                "' is no number of token rows; give numbers like 1,2,4,8");
      }
      begin = end + 1;
    }
  }
  return sizes;
}

// "-cc 3": vLLM's mode.
bool is_level(const std::string& text) {
  return text.size() == 1 && text[0] >= '0' && text[0] <= '3';
}

Result<json> parse_graph_config(const std::string& text) {
  if (text.empty()) return json::object();
  if (is_level(text)) return json::object();
  return parse_ordered_json_object(text, kGraphFlag);
}

Status read_fields(const json& object, EngineConfig& config) {
  JsonFields fields(object, kGraphFlag);
  fields.read("cudagraph_mode", &config.cudagraph_mode);
  fields.read("cudagraph_capture_sizes", &config.cudagraph_capture_sizes);
  fields.read("max_cudagraph_capture_size", &config.max_cudagraph_capture_size);
  for (const char* name : kCompilerFields) fields.ignore({name});
  fields.refuse_unread();
  return fields.status();
}

}  // namespace

void GraphFlags::add_to(CLI::App& app) {
  const char* group = "Graphs";
  app.add_option("--compilation-config", config_json,
                 "Graphs as JSON, also -cc: {\"cudagraph_mode\": \"FULL\", "
                 "\"cudagraph_capture_sizes\": [1, 2, 4]}")
      ->group(group)
      ->type_name("JSON");
  app.add_option("--cudagraph-mode", mode,
                 "Its cudagraph_mode: FULL (a step is one graph, the "
                 "default), PIECEWISE (all but attention), FULL_DECODE_ONLY or FULL_AND_PIECEWISE "
                 "(FULL only while no prompt is computed) or NONE")
      ->group(group)
      ->type_name(
          choices_type({"FULL", "PIECEWISE", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "NONE"}));
  app.add_option("--cudagraph-capture-sizes", sizes,
                 "Its cudagraph_capture_sizes: numbers of token rows that graphs are made for; "
                 "larger steps run without (default: 1, 2, 4, ... --max-num-batched-tokens)")
      ->group(group)
      ->type_name("N,N,...");
  app.add_option("--max-cudagraph-capture-size", max_size,
                 "Its max_cudagraph_capture_size: most token rows of a graph")
      ->group(group);
}

Status GraphFlags::apply_to(EngineConfig& config) const {
  FT_ASSIGN_OR_RETURN(json value, parse_graph_config(config_json));
  struct Short {
    const char* flag;
    const char* field;
    json value;
  };
  FT_ASSIGN_OR_RETURN(const std::vector<int> rows, parse_sizes(sizes));
  const Short shorts[] = {
      {"--cudagraph-mode", "cudagraph_mode", mode.empty() ? json() : json(mode)},
      {"--cudagraph-capture-sizes", "cudagraph_capture_sizes", rows.empty() ? json() : json(rows)},
      {"--max-cudagraph-capture-size", "max_cudagraph_capture_size",
       max_size ? json(*max_size) : json()}};
  for (const Short& given : shorts) {
    if (given.value.is_null()) continue;
    const auto found = value.find(given.field);
    if (found != value.end() && !found->is_null()) {
      return invalid_argument(std::string(given.flag) + " and '" + given.field + "' of " +
                              kGraphFlag + " say the same; give one of them");
    }
    value[given.field] = given.value;
  }
  return read_fields(value, config);
}

void GraphFlags::warn() const {
  if (is_level(config_json)) {
    FT_LOG(warn, "{} {} has no effect: {}", kGraphFlag, config_json, kNoCompiler);
  }
  const Result<json> value = parse_graph_config(config_json);
  if (!value.ok()) return;
  for (const char* name : kCompilerFields) {
    if (!value.value().contains(name)) continue;
    FT_LOG(warn, "'{}' of {} has no effect: {}", name, kGraphFlag, kNoCompiler);
  }
}

}  // namespace foretoken
