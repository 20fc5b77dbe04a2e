// SPDX-License-Identifier: BSD-3-Clause
// The one way to see bytes as a wire struct, so that no length check is ever forgotten.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace nicmem {

template <class T>
concept WireStruct = std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T> &&
                     alignof(T) == 1;

/// The T at the start of `bytes`, or null when they are too few. Lives as long as the bytes.
template <WireStruct T>
const T* view_as(std::span<const std::byte> bytes) {
  return bytes.size() < sizeof(T) ? nullptr : reinterpret_cast<const T*>(bytes.data());
}

template <WireStruct T>
T* view_as(std::span<std::byte> bytes) {
  return bytes.size() < sizeof(T) ? nullptr : reinterpret_cast<T*>(bytes.data());
}

}  // namespace nicmem
