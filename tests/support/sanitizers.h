/* The sanitizer of a build: GCC has macros of its own for it, Clang has features. */
#ifndef WEIR_TESTS_SANITIZERS_H
#define WEIR_TESTS_SANITIZERS_H

#if defined(__SANITIZE_ADDRESS__)
#define WEIR_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define WEIR_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define WEIR_THREAD_SANITIZER 1
#endif
#endif

#endif
