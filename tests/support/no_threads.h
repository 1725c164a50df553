#pragma once
#include <pthread.h>

#include <cstddef>

#include "base/check.h"

namespace foretoken::test {

// While it lives no thread can be started, as where a container's limit is reached: each would have
// a larger stack than there are addresses.
class NoThreads {
 public:
  NoThreads() {
    FT_CHECK(pthread_getattr_default_np(&usual_) == 0);
    pthread_attr_t wanted;
    FT_CHECK(pthread_getattr_default_np(&wanted) == 0);
    FT_CHECK(pthread_attr_setstacksize(&wanted, size_t{1} << 47) == 0);
    FT_CHECK(pthread_setattr_default_np(&wanted) == 0);
    pthread_attr_destroy(&wanted);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&usual_);
    pthread_attr_destroy(&usual_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t usual_;
};

}  // namespace foretoken::test
