// The whole of libforetoken.so comes from the static libraries; CMake wants one source of its own.
