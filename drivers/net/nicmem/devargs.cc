// SPDX-License-Identifier: BSD-3-Clause
#include "devargs.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace nicmem::pmd {
namespace {

tl::unexpected<Error> bad_value(std::string_view key, std::string_view value,
                                std::string_view accepted) {
  return fail(Code::kInvalidArgument,
              std::string(key) + "=" + std::string(value) + ": accepted: " + std::string(accepted));
}

Result<uint32_t> parse_number(std::string_view key, std::string_view value, uint32_t low,
                              uint32_t high) {
  uint32_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || rest != end || number < low || number > high)
    return bad_value(key, value, std::to_string(low) + ".." + std::to_string(high));
  return number;
}

template <class T, size_t N>
Result<T> parse_word(std::string_view key, std::string_view value,
                     const std::array<std::pair<std::string_view, T>, N>& words) {
  std::string accepted;
  for (const auto& [word, meaning] : words) {
    if (word == value) return meaning;
    accepted += (accepted.empty() ? "" : ", ") + std::string(word);
  }
  return bad_value(key, value, accepted);
}

constexpr std::array<std::pair<std::string_view, Control>, 2> kControls = {
    {{"sim", Control::kSim}, {"verbs", Control::kVerbs}}};
constexpr std::array<std::pair<std::string_view, Mode>, 4> kModes = {{
    {"host", Mode::kHost},
    {"split", Mode::kSplit},
    {"nicmem-noinline", Mode::kNicmemNoInline},
    {"nicmem", Mode::kNicmem},
}};
constexpr std::array<std::pair<std::string_view, Split>, 3> kSplits = {
    {{"auto", Split::kAuto}, {"force", Split::kForce}, {"off", Split::kOff}}};
constexpr std::array<std::pair<std::string_view, bool>, 2> kSwitch = {{{"0", false}, {"1", true}}};
constexpr std::array<std::pair<std::string_view, Spill>, 2> kSpills = {
    {{"sw", Spill::kSoftware}, {"hw", Spill::kHardware}}};

Result<std::array<uint8_t, 6>> parse_mac(std::string_view value) {
  std::array<uint8_t, 6> mac{};
  const std::string text(value);
  int used = 0;
  const int fields = std::sscanf(text.c_str(), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0],
                                 &mac[1], &mac[2], &mac[3], &mac[4], &mac[5], &used);
  if (fields != 6 || static_cast<size_t>(used) != text.size() || (mac[0] & 1) != 0 ||
      mac == std::array<uint8_t, 6>{})
    return bad_value("mac", value, "a unicast address such as 02:00:00:00:00:01");
  return mac;
}

/// Stores one argument; false: the key is not the PMD's.
Result<bool> take(Devargs& args, std::optional<uint32_t>& tx_inline, const std::string& key,
                  const std::string& value) {
  if (key == "hca") {
    NM_TRY(args.hca, parse_word(key, value, kControls));
  } else if (key == "mode") {
    NM_TRY(args.mode, parse_word(key, value, kModes));
  } else if (key == "split") {
    NM_TRY(args.split, parse_word(key, value, kSplits));
  } else if (key == "header") {
    NM_TRY(args.header_bytes, parse_number(key, value, kMinHeader, kMaxHeader));
  } else if (key == "tx_inline") {
    NM_TRY(tx_inline, parse_number(key, value, 0, kMaxHeader));
    if (*tx_inline != 0 && *tx_inline < kMinHeader) return bad_value(key, value, "0, or 18..512");
  } else if (key == "spill") {
    NM_TRY(args.spill, parse_word(key, value, kSpills));
  } else if (key == "min_posted") {
    if (value == "auto") {
      args.min_posted = 0;
    } else {
      auto number = parse_number(key, value, kLeastPosted, kMostPosted);
      if (!number) return bad_value(key, value, "auto, or 8..32768");
      args.min_posted = *number;
    }
  } else if (key == "guard") {
    NM_TRY(args.guard, parse_word(key, value, kSwitch));
  } else if (key == "promiscuous") {
    NM_TRY(args.promiscuous, parse_word(key, value, kSwitch));
  } else if (key == "device") {
    if (value.empty()) return bad_value(key, value, "a name");
    args.device = value;
  } else if (key == "mac") {
    NM_TRY(args.mac, parse_mac(value));
  } else {
    return false;
  }
  return true;
}

/// It is for rings whose payload buffers the driver chooses.
Result<void> check_min_posted(const Devargs& args) {
  const bool on_card = args.mode == Mode::kNicmem || args.mode == Mode::kNicmemNoInline;
  if (on_card && args.spill == Spill::kSoftware) return {};
  return fail(Code::kInvalidArgument,
              "min_posted: accepted: with mode=nicmem or nicmem-noinline, and spill=sw");
}

}  // namespace

const char* name_of(Mode mode) {
  for (const auto& [word, meaning] : kModes)
    if (meaning == mode) return word.data();
  return "?";
}

Result<Devargs> parse_devargs(std::string_view text) {
  Devargs args;
  std::optional<uint32_t> tx_inline;
  std::vector<std::string> seen;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return fail(Code::kInvalidArgument, "'" + std::string(item) + "': accepted: key=value");
    const std::string key(item.substr(0, equals)), value(item.substr(equals + 1));
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      return fail(Code::kInvalidArgument, key + "=" + value + ": " + key + " is given twice");
    seen.push_back(key);
    NM_TRY(const bool known, take(args, tx_inline, key, value));
    if (!known) args.rest.emplace_back(key, value);
  }
  if (args.min_posted) NM_TRY_VOID(check_min_posted(args));
  const uint32_t by_mode = args.mode == Mode::kNicmem ? args.header_bytes : 0;
  args.tx_inline_bytes = tx_inline.value_or(by_mode);
  return args;
}

}  // namespace nicmem::pmd
