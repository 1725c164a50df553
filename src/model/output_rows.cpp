#include "model/output_rows.h"

#include <span>
#include <unordered_map>
#include <unordered_set>

#include "kernels/comm/collectives.h"

namespace foretoken {
namespace {

// This rank's rows of an output matrix.
std::span<const int32_t> part_of(const std::vector<int32_t>& rows, const Sharding& sharding) {
  const ColumnPart own =
      column_part(static_cast<int32_t>(rows.size()), sharding.rank, sharding.size);
  return std::span(rows).subspan(static_cast<size_t>(own.begin), static_cast<size_t>(own.count));
}

// Rows of a matrix, and their ids.
struct KeptRows {
  std::vector<int32_t> rows;
  std::vector<int32_t> ids;
};

KeptRows keep(int32_t rows, const std::vector<int32_t>& ids, const std::vector<int32_t>& wanted) {
  std::unordered_map<int32_t, int32_t> row_of;
  for (int32_t row = 0; row < rows; ++row) {
    row_of[ids.empty() ? row : ids[static_cast<size_t>(row)]] = row;
  }
  KeptRows kept;
  for (const int32_t id : wanted) {
    const auto found = row_of.find(id);
    if (found == row_of.end()) continue;
    kept.rows.push_back(found->second);
    kept.ids.push_back(id);
  }
  return kept;
}

}  // namespace

Result<OutputRows> OutputRowsLoader::own(const std::string& name, int32_t rows, int32_t cols,
                                         const std::vector<int32_t>& ids) {
  if (!options_.vocab_ids.empty()) return cut({name, rows}, cols, ids, options_.vocab_ids);
  const Sharding& sharding = options_.sharding;
  const ColumnPart own = column_part(rows, sharding.rank, sharding.size);
  const TensorPart part[] = {{name, rows, own.begin, own.count}};
  OutputRows out;
  const int32_t* id_map = nullptr;
  // Before the matrix, which must stay once it is on its way.
  if (!ids.empty()) FT_RETURN_IF_ERROR(upload(ids, &id_map));
  FT_ASSIGN_OR_RETURN(out.weight, loader_.matrix(part, cols));
  out.head = {out.weight.get(), id_map, rows, sharding};
  return out;
}

Result<OutputRows> OutputRowsLoader::own_rows(const std::string& name, int32_t rows, int32_t cols,
                                              const std::vector<int32_t>& ids) {
  if (options_.vocab_ids.empty()) return cut({name, rows}, cols, {}, ids);
  const std::unordered_set<int32_t> known(ids.begin(), ids.end());
  std::vector<int32_t> wanted = options_.vocab_ids;
  std::erase_if(wanted, [&](int32_t id) { return !known.contains(id); });
  return cut({name, rows}, cols, {}, wanted);
}

Result<OutputRows> OutputRowsLoader::cut(const TensorPart& matrix, int32_t cols,
                                         const std::vector<int32_t>& ids,
                                         const std::vector<int32_t>& wanted) {
  const KeptRows kept = keep(static_cast<int32_t>(matrix.rows), ids, wanted);
  if (kept.ids.empty()) {
    return invalid_argument(
        "none of the ids of the reduced draft vocabulary is in the head's own "
        "of " +
        std::to_string(ids.empty() ? matrix.rows : std::ssize(ids)) +
        "; leave draft_vocab_size out");
  }
  OutputRows out;
  FT_RETURN_IF_ERROR(upload(kept.ids, &out.head.id_map));
  FT_ASSIGN_OR_RETURN(out.weight,
                      loader_.matrix_rows(matrix, cols, part_of(kept.rows, options_.sharding)));
  out.head.weight = out.weight.get();
  out.head.rows = static_cast<int32_t>(kept.ids.size());
  out.head.sharding = options_.sharding;
  out.rows = kept.rows;
  return out;
}

Result<OutputRows> OutputRowsLoader::shared() {
  const std::vector<int32_t>& ids = options_.vocab_ids;
  OutputRows out;
  if (ids.empty()) {
    const SharedHead shared = target_.shared_head();
    out.head = {shared.weight, nullptr, target_.config().vocab_size, shared.sharding};
    return out;
  }
  const std::span<const int32_t> own = part_of(ids, options_.sharding);
  FT_RETURN_IF_ERROR(upload(ids, &out.head.id_map));
  if (options_.dummy) {
    const TensorPart part[] = {{"lm_head.weight", static_cast<int64_t>(ids.size()),
                                own.data() - ids.data(), static_cast<int64_t>(own.size())}};
    FT_ASSIGN_OR_RETURN(out.weight, loader_.matrix(part, target_.config().hidden_size));
  } else {
    FT_ASSIGN_OR_RETURN(out.weight, load_head_rows(device_, options_.target_folder,
                                                   target_.config(), {own.begin(), own.end()}));
  }
  out.head.sharding = options_.sharding;
  out.head.weight = out.weight.get();
  out.head.rows = static_cast<int32_t>(ids.size());
  out.rows = ids;
  return out;
}

Status OutputRowsLoader::upload(const std::vector<int32_t>& ids, const int32_t** out) {
  FT_ASSIGN_OR_RETURN(void* memory, loader_.upload(arena_, ids.data(), ids.size() * sizeof(int32_t),
                                                   "the ids of the draft vocabulary"));
  *out = static_cast<const int32_t*>(memory);
  return {};
}

}  // namespace foretoken
