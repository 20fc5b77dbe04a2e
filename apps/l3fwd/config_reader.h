// SPDX-License-Identifier: BSD-3-Clause
// Strict reading of YAML: every key known and given once, every value there and of its kind.
#pragma once

#include <yaml-cpp/yaml.h>
// yaml.h only declares what this defines.
#include <yaml-cpp/eventhandler.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace nicmem::l3fwd {

/// Thrown by the functions below; never leaves config.cc.
struct Refusal {
  int line;
  std::string text;
};

inline int line_of(const YAML::Node& node) {
  const YAML::Mark mark = node.IsDefined() ? node.Mark() : YAML::Mark::null_mark();
  return mark.is_null() ? 1 : mark.line + 1;
}
inline std::string line_text(const YAML::Node& node) { return std::to_string(line_of(node)); }

[[noreturn]] inline void refuse(const YAML::Node& node, const std::string& what,
                                const std::string& accepted) {
  throw Refusal{line_of(node), what + "; accepted: " + accepted};
}

inline std::string scalar(const YAML::Node& node, const std::string& what) {
  if (!node.IsScalar()) refuse(node, what + ": not a single value", "one value");
  return node.Scalar();
}

inline uint32_t number(const YAML::Node& node, const std::string& what, uint32_t least,
                       uint32_t most) {
  const std::string text = scalar(node, what);
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    refuse(node, what + " '" + text + "'", std::to_string(least) + ".." + std::to_string(most));
  return value;
}

inline bool boolean(const YAML::Node& node, const std::string& what) {
  const std::string text = scalar(node, what);
  if (text == "true") return true;
  if (text != "false") refuse(node, what + " '" + text + "'", "true, false");
  return false;
}

inline const YAML::Node& list(const YAML::Node& node, const std::string& what) {
  if (!node.IsSequence()) refuse(node, what + ": not a list", "a list");
  return node;
}

/// A map whose keys are all known. Refuses unknown and repeated keys and empty values.
class Section {
 public:
  Section(const YAML::Node& node, const std::string& what,
          std::initializer_list<std::string_view> keys)
      : node_(node), what_(what) {
    std::string known;
    for (const std::string_view key : keys) known += (known.empty() ? "" : ", ") + std::string(key);
    if (!node.IsMap()) refuse(node, what + ": not a map", "a map with " + known);
    for (const auto& entry : node) {
      const std::string key = scalar(entry.first, what + " key");
      bool is_known = false;
      for (const std::string_view name : keys) is_known = is_known || name == key;
      if (!is_known) refuse(entry.first, what + " key '" + key + "'", known);
      if (entry.second.IsNull())
        refuse(entry.first, what + " key '" + key + "' has no value", "a value, or no such key");
      if (!values_.emplace(key, entry.second).second)
        refuse(entry.first, what + " key '" + key + "' given twice", "each key once");
    }
  }

  /// Undefined (false) when absent.
  YAML::Node find(const std::string& key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? YAML::Node(YAML::NodeType::Undefined) : at->second;
  }

  YAML::Node required(const std::string& key) const {
    const YAML::Node value = find(key);
    if (!value) refuse(node_, what_ + " without '" + key + "'", "'" + key + "' is required");
    return value;
  }

 private:
  YAML::Node node_;
  std::string what_;
  std::map<std::string, YAML::Node> values_;
};

}  // namespace nicmem::l3fwd
