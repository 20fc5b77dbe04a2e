// SPDX-License-Identifier: BSD-3-Clause
#include "surroundings.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

namespace nicmem::fake {
namespace {

/// What a port takes beyond its MTU, without FCS: Ethernet header and a tag. [Linux,
/// MLX5E_HW2SW_MTU]
constexpr int kBeyondMtu = 18;

/// Asks the kernel for one thing about an interface; whether it knows it.
bool ask(const std::string& netdev, unsigned long what, ifreq& request) {
  if (netdev.empty()) return false;
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", netdev.c_str());
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool known = ioctl(fd, what, &request) == 0;
  close(fd);
  return known;
}

}  // namespace

Surroundings::Surroundings(Device& device)
    : device_(device), port_folder_(std::string(device.verbs.ibdev_path) + "/ports/1/") {
  std::error_code error;
  const auto folder = std::filesystem::path(device.verbs.ibdev_path) / "device" / "net";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    netdev_ = entry.path().filename().string();
    break;
  }
  writable_ = std::filesystem::is_directory(port_folder_ + "counters", error);
}

std::array<uint8_t, 6> Surroundings::mac() const {
  std::array<uint8_t, 6> mac{0x02, 0, 0, 0, 0, static_cast<uint8_t>(device_.guid())};
  ifreq request{};
  if (ask(netdev_, SIOCGIFHWADDR, request))
    std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
  return mac;
}

void Surroundings::look() {
  follow_interface();
  if (writable_) write_counters();
}

void Surroundings::follow_interface() {
  ifreq request{};
  if (ask(netdev_, SIOCGIFMTU, request) && request.ifr_mtu != mtu_) {
    mtu_ = request.ifr_mtu;
    static_cast<void>(device_.port->set_max_frame(static_cast<uint32_t>(mtu_ + kBeyondMtu)));
  }
  if (ask(netdev_, SIOCGIFFLAGS, request)) {
    const bool up = (request.ifr_flags & IFF_UP) != 0;
    if (up != up_) static_cast<void>(device_.port->set_link(up));
    up_ = up;
  }
}

/// Bytes are counted in words of four. [Linux, IB_PMA_PORT_COUNTERS]
void Surroundings::write_counters() {
  const hca::PortCounters now = device_.port->counters();
  const auto update = [&](const char* name, uint64_t hca::PortCounters::*member, uint64_t unit) {
    if (now.*member / unit != written_.*member / unit) write(name, now.*member / unit);
  };
  update("hw_counters/out_of_buffer", &hca::PortCounters::rx_no_buffer, 1);
  update("counters/port_rcv_packets", &hca::PortCounters::rx_frames, 1);
  update("counters/port_rcv_data", &hca::PortCounters::rx_bytes, 4);
  update("counters/port_rcv_errors", &hca::PortCounters::rx_malformed, 1);
  update("counters/port_xmit_packets", &hca::PortCounters::tx_frames, 1);
  update("counters/port_xmit_data", &hca::PortCounters::tx_bytes, 4);
  update("counters/port_xmit_discards", &hca::PortCounters::tx_wire_drops, 1);
  written_ = now;
}

/// In one piece: somebody may be reading.
void Surroundings::write(const std::string& name, uint64_t value) const {
  const std::string path = port_folder_ + name;
  const std::string fresh = path + ".new";
  FILE* const file = std::fopen(fresh.c_str(), "w");
  if (file == nullptr) return;
  std::fprintf(file, "%llu\n", static_cast<unsigned long long>(value));
  std::fclose(file);
  std::rename(fresh.c_str(), path.c_str());
}

}  // namespace nicmem::fake
