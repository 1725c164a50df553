#include "model/layer/attention/distance_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"

namespace foretoken {

int32_t distance_bucket(int32_t behind, int32_t buckets) {
  const int32_t side = buckets / 2, exact = side / 2, distance = std::abs(behind);
  const int32_t first = behind > 0 ? side : 0;
  if (distance < exact) return first + distance;
  const float of_all = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                       static_cast<float>(std::log(double(kBiasReach) / exact));
  const auto more = static_cast<int32_t>(of_all * static_cast<float>(side - exact));
  return first + std::min(exact + more, side - 1);
}

Status load_distance_bias(PartLoader& loader, const GqaSpec& whole, const float** out) {
  const int32_t buckets = loader.config().distance_buckets, heads = whole.num_heads;
  std::vector<float> all(static_cast<size_t>(heads) * kDistances);
  const std::string name = whole.distance_bias;
  const int64_t shape[] = {buckets, heads};
  FT_RETURN_IF_ERROR(loader.weights().expect(name, shape));
  if (loader.weights().has_optional(name)) {
    FT_ASSIGN_OR_RETURN(const std::vector<float> stored, loader.weights().numbers(name));
    for (size_t i = 0; i < all.size(); ++i) {
      const auto head = static_cast<int32_t>(i) / kDistances;
      const int32_t behind = static_cast<int32_t>(i) % kDistances - kBiasReach;
      all[i] = stored.at(static_cast<size_t>(distance_bucket(behind, buckets) * heads + head));
    }
  }
  return loader.upload(all, "what scores get for distances", out);
}

}  // namespace foretoken
