// SPDX-License-Identifier: BSD-3-Clause
// Two ways to the same count: the sanitizers own malloc and offer a hook (ThreadSanitizer's leaves
// aligned_alloc out); without them this file defines malloc and its kin before glibc's and hands on
// to glibc's own names.
#include "support/alloc_guard.h"

#include <cstddef>

namespace nicmem::test {
namespace {
thread_local uint64_t allocations = 0;
}
uint64_t thread_allocations() { return allocations; }
}  // namespace nicmem::test

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// The runtime exports it; GCC's package does not install the header that declares it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void*, size_t), void (*free_hook)(const volatile void*));

namespace nicmem::test {
namespace {
[[maybe_unused]] const int hooked = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { ++allocations; }, [](const volatile void*) {});
}
}  // namespace nicmem::test

#else

#include <cerrno>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) noexcept {
  ++nicmem::test::allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) noexcept {
  ++nicmem::test::allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) noexcept {
  ++nicmem::test::allocations;
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  ++nicmem::test::allocations;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) noexcept {
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
}

#endif
