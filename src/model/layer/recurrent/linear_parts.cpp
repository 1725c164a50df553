#include "model/layer/recurrent/linear_parts.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken {
namespace {

// Heads of values [first + i * apart, + count) for i below `pieces`.
struct ValueHeads {
  int64_t first;
  int64_t count;
  int64_t pieces = 1;
  int64_t apart = 0;
};

// Where heads take turns, value v of key k is head v * key_heads + k. Ranks that have the same key
// divide its values.
ValueHeads value_heads_of(const LinearShape& whole, const Sharding& sharding) {
  const ShardRange own = shard_of(whole.value_heads, sharding);
  if (!whole.tiled || !sharding.is_cut()) return {own.begin, own.count};
  const ShardRange keys = shard_of_kv_heads(whole.key_heads, sharding);
  const int64_t of_key = whole.value_heads / whole.key_heads;
  const int64_t before = own.begin - keys.begin * of_key;  // values of the key that others have
  return {before * whole.key_heads + keys.begin, keys.count, own.count / keys.count,
          whole.key_heads};
}

// Heads of a rank, and the rows that all queries (and all keys), and all values, have.
struct LinearPlaces {
  ShardRange keys;
  ShardRange values;  // of files that have those of a key together
  ValueHeads turning;
  const LinearSpec& spec;
  int64_t q_size;
  int64_t v_size;
  int64_t key_dim;
  int64_t value_dim;

  LinearPlaces(const LinearSpec& whole, const Sharding& sharding)
      : keys(shard_of_kv_heads(whole.shape.key_heads, sharding)),
        values(shard_of(whole.shape.value_heads, sharding)),
        turning(value_heads_of(whole.shape, sharding)),
        spec(whole),
        q_size(whole.shape.q_size()),
        v_size(whole.shape.v_size()),
        key_dim(whole.shape.key_dim),
        value_dim(whole.shape.value_dim) {}

  // Of a key head, the values of the rank among its own.
  struct ValuesOfKey {
    int64_t head;
    int64_t begin;
    int64_t count;
  };
  std::vector<ValuesOfKey> values_by_key(int64_t num_keys) const {
    const int64_t each = v_size / value_dim / num_keys;
    std::vector<ValuesOfKey> own;
    for (int64_t head = keys.begin; head < keys.begin + keys.count; ++head) {
      const int64_t begin = std::max(values.begin, head * each);
      const int64_t end = std::min(values.begin + values.count, (head + 1) * each);
      own.push_back({head, begin - head * each, end - begin});
    }
    return own;
  }

  // The rank's keys, or queries, in a tensor of `all` rows where those of all heads begin at `at`.
  TensorPart of_keys(const std::string& name, int64_t all, int64_t at) const {
    return {name, all, at + keys.begin * key_dim, keys.count * key_dim};
  }
  // What values have `each` of a head.
  void add_heads(const std::string& name, int64_t all, int64_t at, int64_t each,
                 std::vector<TensorPart>* parts) const {
    for (int64_t i = 0; i < turning.pieces; ++i) {
      const int64_t head = turning.first + i * turning.apart;
      TensorPart& part =
          parts->emplace_back(TensorPart{name, all, at + head * each, turning.count * each});
      part.turning = turning_of(spec, at, each);
    }
  }
  void add_values(const std::string& name, int64_t all, int64_t at,
                  std::vector<TensorPart>* parts) const {
    add_heads(name, all, at, value_dim, parts);
  }
};

// A key head's query, key, values and gates lie together. Ranks that have the same key head divide
// its values.
std::vector<TensorPart> grouped_first_parts(const std::string& name, const LinearSpec& whole,
                                            const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  const int64_t all = 2 * (at.q_size + at.v_size);
  const int64_t group = all / whole.shape.key_heads, values = at.v_size / whole.shape.key_heads;
  std::vector<TensorPart> parts;
  for (const int64_t first : {int64_t{0}, at.key_dim}) {
    for (const auto& own : at.values_by_key(whole.shape.key_heads)) {
      parts.push_back({name, all, own.head * group + first, at.key_dim});
    }
  }
  const int num_parts = whole.gate == NormGate::kNone ? 1 : 2;
  for (int64_t part = 0; part < num_parts; ++part) {
    for (const auto& own : at.values_by_key(whole.shape.key_heads)) {
      const int64_t first = 2 * at.key_dim + part * values + own.begin * at.value_dim;
      parts.push_back({name, all, own.head * group + first, own.count * at.value_dim});
    }
  }
  return parts;
}

// Of each head its query, key and value.
std::vector<TensorPart> parts_by_head(const std::string& name, const LinearSpec& whole,
                                      const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  std::vector<TensorPart> parts;
  for (int64_t which = 0; which < 3; ++which) {
    for (int64_t head = at.keys.begin; head < at.keys.begin + at.keys.count; ++head) {
      parts.push_back({name, 3 * at.q_size, (3 * head + which) * at.key_dim, at.key_dim});
    }
  }
  return parts;
}

// The same of scales, which lie before the decays.
std::vector<TensorPart> grouped_step_parts(const std::string& name, const LinearSpec& whole,
                                           const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  const int64_t each = whole.shape.value_heads / whole.shape.key_heads;
  std::vector<TensorPart> parts;
  for (const int64_t behind : {each, int64_t{0}}) {
    for (const auto& own : at.values_by_key(whole.shape.key_heads)) {
      parts.push_back(
          {name, 2 * whole.shape.value_heads, own.head * 2 * each + behind + own.begin, own.count});
    }
  }
  return parts;
}

// Of kJoined's tensor.
int64_t joined_rows(const LinearSpec& whole) {
  return whole.first_size() + 2 * int64_t{whole.shape.value_heads};
}

// Queries, keys, values and gates of it.
std::vector<TensorPart> joined_first_parts(const std::string& name, const LinearSpec& whole,
                                           const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  const int64_t all = joined_rows(whole), values = 2 * at.q_size;
  std::vector<TensorPart> parts = {at.of_keys(name, all, 0), at.of_keys(name, all, at.q_size)};
  at.add_values(name, all, values, &parts);
  at.add_values(name, all, values + at.v_size, &parts);
  return parts;
}

}  // namespace

TurningHeads turning_of(const LinearSpec& whole, int64_t first, int64_t rows) {
  const LinearShape& shape = whole.shape;
  if (!shape.tiled) return {};
  return {first, static_cast<int32_t>(rows), shape.key_heads, shape.value_heads / shape.key_heads};
}

std::vector<TensorPart> first_parts(const std::string& base, const LinearSpec& whole,
                                    const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  const std::string name = base + whole.in_qkv;
  std::vector<TensorPart> parts;
  switch (whole.files) {
    case LinearFiles::kByGroup:
      return grouped_first_parts(name, whole, sharding);
    case LinearFiles::kStep: {
      const int64_t all = 2 * (at.q_size + at.v_size) + whole.shape.value_heads;
      parts = {at.of_keys(name, all, 2 * at.v_size + at.q_size),
               at.of_keys(name, all, 2 * at.v_size)};
      at.add_values(name, all, at.v_size, &parts);
      at.add_values(name, all, 0, &parts);
      FT_CHECK(parts.size() == 4);  // no such file has heads that take turns
      const LinearFactors& factors = whole.factors;
      const float by[] = {factors.queries, factors.keys, factors.values, factors.gates};
      for (size_t i = 0; i < parts.size(); ++i) parts[i].padded = PaddedHeads::scaled(by[i]);
      break;
    }
    case LinearFiles::kEach:
      parts = {at.of_keys(base + "q_proj", at.q_size, 0),
               at.of_keys(base + "k_proj", at.q_size, 0)};
      at.add_values(base + "v_proj", at.v_size, 0, &parts);
      break;
    case LinearFiles::kByHead:
      parts = parts_by_head(name, whole, sharding);
      break;
    case LinearFiles::kJoined:
      return joined_first_parts(name, whole, sharding);
    case LinearFiles::kApart: {
      const int64_t all = 2 * at.q_size + at.v_size;
      parts = {at.of_keys(name, all, 0), at.of_keys(name, all, at.q_size)};
      if (!sharding.is_cut()) {
        parts = {{name, all}};
        parts[0].turning = turning_of(whole, 2 * at.q_size, at.value_dim);
        break;
      }
      at.add_values(name, all, 2 * at.q_size, &parts);
      break;
    }
  }
  const bool has_gates = whole.gate != NormGate::kNone && whole.gate_rank == 0;
  if (has_gates && whole.files != LinearFiles::kStep) {
    at.add_values(base + whole.in_gate, at.v_size, 0, &parts);
  }
  return parts;
}

std::vector<TensorPart> step_parts(const std::string& base, const LinearSpec& whole,
                                   const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  std::vector<TensorPart> parts;
  switch (whole.files) {
    case LinearFiles::kByGroup:
      parts = grouped_step_parts(base + whole.in_decay, whole, sharding);
      break;
    case LinearFiles::kStep: {
      const int64_t before = 2 * (at.q_size + at.v_size);
      at.add_heads(base + whole.in_qkv, before + whole.shape.value_heads, before, 1, &parts);
      parts[0].padded = PaddedHeads::scaled(whole.factors.steps);
      break;
    }
    case LinearFiles::kApart:
    case LinearFiles::kEach:
      if (!whole.decays()) break;
      if (whole.decay_rank == 0) {
        const int64_t each = whole.shape.decay_size() / whole.shape.value_heads;
        at.add_heads(base + whole.in_decay, whole.shape.decay_size(), 0, each, &parts);
      }
      at.add_heads(base + whole.in_scale, whole.shape.value_heads, 0, 1, &parts);
      break;
    case LinearFiles::kJoined: {
      const int64_t all = joined_rows(whole), heads = whole.shape.value_heads;
      at.add_heads(base + whole.in_qkv, all, all - heads, 1, &parts);
      at.add_heads(base + whole.in_qkv, all, all - 2 * heads, 1, &parts);
      break;
    }
    case LinearFiles::kByHead:
      break;
  }
  for (TensorPart& part : parts) part.is_exact = true;
  return parts;
}

std::vector<TensorPart> value_parts(const std::string& name, const LinearSpec& whole,
                                    const Sharding& sharding, int64_t each) {
  std::vector<TensorPart> parts;
  LinearPlaces(whole, sharding).add_heads(name, whole.shape.value_heads * each, 0, each, &parts);
  return parts;
}

ColumnRange value_columns(const LinearSpec& whole, const Sharding& sharding) {
  const ValueHeads heads = value_heads_of(whole.shape, sharding);
  const int64_t each = whole.shape.value_dim;
  return {whole.shape.v_size(), heads.first * each, heads.count * heads.pieces * each, heads.pieces,
          heads.apart * each};
}

std::vector<float> values_of_rank(const std::vector<float>& numbers, const LinearSpec& whole,
                                  const Sharding& sharding) {
  std::vector<float> own;
  for (const TensorPart& part : value_parts("", whole, sharding, 1)) {
    const auto first = numbers.begin() + part.first_row;
    own.insert(own.end(), first, first + part.num_rows);
  }
  return own;
}

std::vector<TensorPart> apart_conv_parts(const std::string& base, const LinearSpec& whole,
                                         const Sharding& sharding, bool is_deep) {
  const LinearPlaces at(whole, sharding);
  std::vector<TensorPart> parts = {at.of_keys(base + "q_conv1d.weight", at.q_size, 0),
                                   at.of_keys(base + "k_conv1d.weight", at.q_size, 0)};
  at.add_values(base + "v_conv1d.weight", at.v_size, 0, &parts);
  for (TensorPart& part : parts) {
    if (is_deep) part.stacked = part.rows;
    part.row_size = whole.conv_width;
    part.rows *= whole.conv_width;
    part.first_row *= whole.conv_width;
    part.num_rows *= whole.conv_width;
  }
  return parts;
}

// As the first product has them, which for kStep are in the opposite order.
std::vector<TensorPart> conv_parts(const std::string& name, const LinearSpec& whole,
                                   const Sharding& sharding, int64_t each, bool is_deep) {
  const LinearPlaces at(whole, sharding);
  const int64_t all = whole.conv_channels();
  std::vector<TensorPart> parts;
  if (whole.files == LinearFiles::kStep) {
    parts = {at.of_keys(name, all, at.v_size + at.q_size), at.of_keys(name, all, at.v_size)};
    at.add_values(name, all, 0, &parts);
  } else {
    parts = {at.of_keys(name, all, 0), at.of_keys(name, all, at.q_size)};
    at.add_values(name, all, 2 * at.q_size, &parts);
  }
  for (TensorPart& part : parts) {
    part.rows *= each;
    part.first_row *= each;
    part.num_rows *= each;
    if (each > 1) part.row_size = each;
    if (is_deep) part.stacked = all;
  }
  return parts;
}

}  // namespace foretoken
