#pragma once

// FT_UNDER_ASAN, FT_UNDER_TSAN: 1 in a build of that sanitizer, which GCC and clang tell by other
// means, else 0.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FT_UNDER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FT_UNDER_TSAN 1
#endif
#endif
#if !defined(FT_UNDER_ASAN) && defined(__SANITIZE_ADDRESS__)
#define FT_UNDER_ASAN 1
#endif
#if !defined(FT_UNDER_TSAN) && defined(__SANITIZE_THREAD__)
#define FT_UNDER_TSAN 1
#endif
#ifndef FT_UNDER_ASAN
#define FT_UNDER_ASAN 0
#endif
#ifndef FT_UNDER_TSAN
#define FT_UNDER_TSAN 0
#endif
