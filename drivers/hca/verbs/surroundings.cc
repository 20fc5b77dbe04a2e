// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/surroundings.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "drivers/hca/verbs/handles.h"

namespace nicmem::hca_verbs {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The value of `key` in a file of KEY=VALUE lines.
std::string value_of(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + "=")) return line.substr(key.size() + 1);
  return {};
}

/// Of the interfaces of one PCI function the one that is not a representor: those have the number
/// of a port that is not the first.
std::string main_interface(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string port = first_line(entry.path() / "dev_port");
    const std::string name = first_line(entry.path() / "phys_port_name");
    const bool representor = name.find("pf") != std::string::npos;  // "pf0vf1"; an uplink is "p0"
    if ((port.empty() || port == "0") && !representor) names.push_back(entry.path().filename());
  }
  return names.empty() ? std::string() : *std::ranges::min_element(names);
}

template <class Number>
Number to_number(const std::string& text, Number otherwise) {
  Number number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Surroundings::Surroundings(std::string ibdev_path)
    : path_(std::move(ibdev_path)),
      pci_address_(value_of(path_ + "/device/uevent", "PCI_SLOT_NAME")),
      netdev_(main_interface(path_ + "/device/net")) {}

int Surroundings::numa_node() const {
  return to_number(first_line(path_ + "/device/numa_node"), -1);
}

std::string Surroundings::text(const char* name) const { return first_line(path_ + "/" + name); }

uint64_t Surroundings::counter(const char* name) const {
  return to_number(first_line(path_ + "/ports/1/" + name), uint64_t{0});
}

/// One question to, or change of, the network interface. `request` is an ifreq.
Result<void> Surroundings::ask(unsigned long what, void* request, const std::string& why) const {
  auto& named = *static_cast<ifreq*>(request);
  std::snprintf(named.ifr_name, sizeof named.ifr_name, "%s", netdev_.c_str());
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(Code::kSystem, why + ": socket: " + std::strerror(errno), errno);
  const int error = ioctl(fd, what, request) == 0 ? 0 : errno;
  close(fd);
  if (error == 0) return {};
  const char* const remedy = error == EPERM ? ": needs CAP_NET_ADMIN" : "";
  return fail(Code::kSystem, netdev_ + ": " + why + ": " + std::strerror(error) + remedy, error);
}

std::array<uint8_t, 6> Surroundings::mac() const {
  std::array<uint8_t, 6> mac{};
  ifreq request{};
  if (!netdev_.empty() && ask(SIOCGIFHWADDR, &request, "address"))
    std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
  return mac;
}

uint32_t Surroundings::mtu() const {
  ifreq request{};
  const bool known = !netdev_.empty() && ask(SIOCGIFMTU, &request, "MTU");
  return known ? static_cast<uint32_t>(request.ifr_mtu) : 0;
}

Result<void> Surroundings::set_mtu(uint32_t mtu) {
  ifreq request{};
  request.ifr_mtu = static_cast<int>(mtu);
  return ask(SIOCSIFMTU, &request, "MTU " + std::to_string(mtu));
}

bool Surroundings::is_up() const {
  ifreq request{};
  return !netdev_.empty() && ask(SIOCGIFFLAGS, &request, "state") &&
         (request.ifr_flags & IFF_UP) != 0;
}

Result<void> Surroundings::set_up(bool up) {
  ifreq request{};
  NM_TRY_VOID(ask(SIOCGIFFLAGS, &request, "state"));
  const auto flags = static_cast<short>(up ? request.ifr_flags | IFF_UP
                                          : request.ifr_flags & ~IFF_UP);
  if (flags == request.ifr_flags) return {};
  request.ifr_flags = flags;
  return ask(SIOCSIFFLAGS, &request, up ? "link up" : "link down");
}

}  // namespace nicmem::hca_verbs
