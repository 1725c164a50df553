#include "serve/fields/kv_transfer.h"

#include <algorithm>

#include "base/log.h"
#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTransferFlag = "--kv-transfer-config";
constexpr double kGiB = 1 << 30;
constexpr uint64_t kMaxHostTokens = uint64_t{1} << 40;  // of --kv-offloading-tokens

// A connector that keeps blocks in host memory.
struct HostConnector {
  const char* name;
  double usual_bytes;  // without a size of its own; 0: it needs one
};

constexpr HostConnector kHostConnectors[] = {
    {"OffloadingConnector", 0},
    {"SimpleCPUOffloadConnector", 8 * kGiB},
};

Status refuse_connector(const std::string& name) {
  const bool is_lmcache = name.starts_with("LMCache");
  const std::string why = is_lmcache ? "LMCache is a program of its own, which is not called"
                                     : "KV blocks are not moved between servers";
  return unsupported(std::string(kTransferFlag) + " " + name + ": " + why +
                     "; leave it out, or keep blocks in host memory with --kv-offloading-size");
}

// How much of host memory a connector asks for, of all ranks of an engine together.
struct HostRoom {
  double bytes = 0;
  double bytes_per_rank = 0;
  uint64_t num_blocks = 0;
  uint64_t block_size = 0;
};

Status read_room(const Json& extra, HostRoom* room) {
  JsonFields fields(extra, std::string(kTransferFlag) + ": kv_connector_extra_config");
  fields.read("cpu_bytes_to_use", &room->bytes);
  fields.read("cpu_bytes_to_use_per_rank", &room->bytes_per_rank);
  fields.read("num_cpu_blocks", &room->num_blocks);
  fields.read("block_size", &room->block_size);
  FT_RETURN_IF_ERROR(fields.status());
  if (room->bytes < 0 || room->bytes_per_rank < 0) {
    return invalid_argument(std::string(kTransferFlag) + ": cpu_bytes_to_use must be above 0");
  }
  for (const auto& [name, value] : extra.items()) {
    if (name.starts_with("cpu_bytes_to_use") || name == "num_cpu_blocks" || name == "block_size") {
      continue;
    }
    FT_LOG(warn, "'{}' of {} has no effect: the engine keeps blocks that its prefix cache gives up",
           name, kTransferFlag);
  }
  return {};
}

Status write_room(const HostConnector& connector, const HostRoom& room, EngineConfig* config) {
  if (config->kv_offloading_size > 0 || config->kv_offloading_tokens > 0) {
    return invalid_argument(std::string(kTransferFlag) + " " + connector.name +
                            " and --kv-offloading-size say the same; give one of them");
  }
  const ParallelConfig& ranks = config->parallel;
  const int num_ranks = ranks.tensor_parallel_size * ranks.pipeline_parallel_size;
  double bytes = room.bytes_per_rank > 0 ? room.bytes_per_rank * num_ranks : room.bytes;
  if (bytes == 0 && room.num_blocks > 0) {
    const auto own = static_cast<uint64_t>(std::max(config->block_size, 1));
    const uint64_t block = room.block_size > 0 ? room.block_size : own;
    if (room.num_blocks > kMaxHostTokens / block) {
      return invalid_argument(std::string(kTransferFlag) + ": num_cpu_blocks of block_size " +
                              std::to_string(block) + " are too many tokens; use " +
                              std::to_string(kMaxHostTokens / block) + " blocks at most");
    }
    config->kv_offloading_tokens = static_cast<int64_t>(room.num_blocks * block);
    return {};
  }
  if (bytes == 0) bytes = connector.usual_bytes;
  if (bytes == 0) {
    return invalid_argument(
        std::string(kTransferFlag) + " " + connector.name +
        " has no size; add \"kv_connector_extra_config\": {\"cpu_bytes_to_use\": BYTES}");
  }
  config->kv_offloading_size = bytes / kGiB;
  return {};
}

}  // namespace

Status read_kv_transfer(const std::string& text, EngineConfig* config) {
  FT_ASSIGN_OR_RETURN(const Json given, parse_ordered_json_object(text, kTransferFlag));
  std::string name;
  JsonFields fields(given, kTransferFlag);
  fields.read("kv_connector", &name);
  const Json* extra = fields.raw("kv_connector_extra_config");
  FT_RETURN_IF_ERROR(fields.status());
  if (name.empty()) return {};
  const auto* connector =
      std::ranges::find_if(kHostConnectors, [&](const HostConnector& c) { return c.name == name; });
  if (connector == std::end(kHostConnectors)) return refuse_connector(name);
  HostRoom room;
  if (extra != nullptr && !extra->is_null()) {
    if (!extra->is_object()) {
      return invalid_argument(std::string(kTransferFlag) +
                              ": kv_connector_extra_config must be a JSON object");
    }
    FT_RETURN_IF_ERROR(read_room(*extra, &room));
  }
  return write_room(*connector, room, config);
}

}  // namespace foretoken
