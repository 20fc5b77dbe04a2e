// SPDX-License-Identifier: BSD-3-Clause
// A traffic source and sink: see generator.h.
#include "sim/generator.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/bits.h"
#include "base/rng.h"
#include "base/view.h"
#include "hw/checksum.h"
#include "hw/ipv4.h"
#include "hw/udp.h"

namespace nicmem::sim {
namespace {

constexpr uint32_t kHeaders =
    sizeof(hw::EtherHeader) + sizeof(hw::Ipv4Header) + sizeof(hw::UdpHeader);
constexpr uint32_t kMaxFlows = 1u << 20;
constexpr uint32_t kFirstPort = 1024;
constexpr uint64_t kNanosPerSecond = 1'000'000'000;

/// Of the bytes behind the UDP header. [CRC-32C, reflected polynomial 0x82f63b78, bit by bit: it is
/// for tests, and short.]
uint32_t payload_check(Frame frame) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < table.size(); ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
      table[i] = crc;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (const std::byte byte : frame.subspan(std::min<size_t>(kHeaders, frame.size()))) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  }
  return ~crc;
}

/// Host `i` of a prefix whose addresses are `span` many, without the first and the last where the
/// prefix is long enough to have such.
uint32_t host(uint32_t prefix, uint32_t span, uint32_t i) {
  return span > 2 ? prefix + 1 + i % (span - 2) : prefix + i % span;
}

struct FlowPorts {
  uint16_t source, destination;
};

/// Distinct for each flow below 2^20.
FlowPorts flow_ports(uint32_t flow) {
  constexpr uint32_t kPorts = 0x8000;
  return {static_cast<uint16_t>(kFirstPort + flow % kPorts),
          static_cast<uint16_t>(kFirstPort + flow / kPorts)};
}

void build(std::span<std::byte> frame, const GeneratorOptions& o, uint32_t flow, Rng& rng) {
  for (size_t at = kHeaders; at < frame.size(); at += sizeof(uint64_t)) {
    const uint64_t word = rng.next();
    std::memcpy(frame.data() + at, &word, std::min(sizeof word, frame.size() - at));
  }
  auto& ether = *view_as<hw::EtherHeader>(frame);
  ether = {
      .destination = o.destination_mac, .source = o.source_mac, .type = be16(hw::kEtherTypeIpv4)};
  const std::span<std::byte> packet = frame.subspan(sizeof ether);
  const auto hosts = static_cast<uint32_t>(uint64_t{1} << (32 - o.destination_length));
  auto& ip = *view_as<hw::Ipv4Header>(packet);
  ip = {.version_ihl = 0x45,
        .tos = 0,
        .total_length = be16(static_cast<uint16_t>(packet.size())),
        .id = be16(0),
        .fragment = be16(hw::Ipv4Header::DontFragment::set(0, 1)),
        .ttl = 64,
        .protocol = hw::kProtocolUdp,
        .checksum = be16(0),
        .source = be32(host(o.source, 256, flow)),
        .destination = be32(host(o.destination, hosts, flow))};
  ip.checksum.set(hw::checksum_of(packet.first(sizeof ip)));
  const std::span<std::byte> segment = packet.subspan(sizeof ip);
  const FlowPorts ports = flow_ports(flow);
  auto& udp = *view_as<hw::UdpHeader>(segment);
  udp = {.source_port = be16(ports.source),
         .destination_port = be16(ports.destination),
         .length = be16(static_cast<uint16_t>(segment.size())),
         .checksum = be16(0)};
  const std::span<const std::byte> addresses = packet.subspan(offsetof(hw::Ipv4Header, source), 8);
  const uint16_t pseudo = hw::sum_words(addresses, hw::fold_sum(hw::kProtocolUdp + segment.size()));
  const uint16_t sum = hw::checksum_of(segment, pseudo);
  udp.checksum.set(sum == 0 ? 0xffff : sum);  // 0 would say that there is none
}

}  // namespace

std::vector<uint32_t> GeneratorOptions::imix() {
  return {60, 590, 60, 60, 590, 60, 1514, 60, 590, 60, 590, 60};
}

Result<std::unique_ptr<Generator>> Generator::create(const GeneratorOptions& o) {
  if (o.frame_bytes.empty()) {
    return fail(Code::kInvalidArgument, "generator: no frame size given");
  }
  for (const uint32_t bytes : o.frame_bytes) {
    if (bytes >= kHeaders && bytes <= kMaxFrameBytes) continue;
    return fail(Code::kInvalidArgument, "generator: frame of " + std::to_string(bytes) +
                                            " bytes, accepted: " + std::to_string(kHeaders) +
                                            " to " + std::to_string(kMaxFrameBytes));
  }
  if (o.flows == 0 || o.flows > kMaxFlows) {
    return fail(Code::kInvalidArgument, "generator: " + std::to_string(o.flows) +
                                            " flows, accepted: 1 to " + std::to_string(kMaxFlows));
  }
  if (o.destination_length < 8 || o.destination_length > 32) {
    return fail(Code::kInvalidArgument, "generator: destination prefix length " +
                                            std::to_string(o.destination_length) +
                                            ", accepted: 8 to 32");
  }
  return std::unique_ptr<Generator>(new Generator(o));
}

Generator::Generator(const GeneratorOptions& options) : options_(options) {
  // Every flow, and every size as often as the list says.
  const size_t sizes = options.frame_bytes.size();
  const size_t count = round_up<size_t>(options.flows, sizes);
  size_t bytes = 0;
  const auto slot = [](uint32_t frame) { return round_up<size_t>(frame, 64); };
  for (size_t i = 0; i < count; ++i) bytes += slot(options.frame_bytes[i % sizes]);
  memory_.resize(bytes);
  frames_.reserve(count);
  Rng rng(options.seed);
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t size = options.frame_bytes[i % sizes];
    const std::span<std::byte> frame(memory_.data() + at, size);
    build(frame, options, static_cast<uint32_t>(i % options.flows), rng);
    frames_.emplace_back(frame);
    if (options.check) checks_.push_back(payload_check(frame));
    at += slot(size);
  }
}

/// How many frames may have been sent by `now`.
uint64_t Generator::due(Nanos now) {
  uint64_t due = options_.frames == 0 ? ~uint64_t{0} : options_.frames;
  if (options_.rate > 0) {
    if (!started_) start_ = now;
    started_ = true;
    const Nanos elapsed = now - start_;
    const uint64_t paced = elapsed / kNanosPerSecond * options_.rate +
                           elapsed % kNanosPerSecond * options_.rate / kNanosPerSecond;
    due = std::min(due, paced);
  }
  return due;
}

size_t Generator::receive(std::span<Frame> out, Nanos now) {
  const uint64_t left = due(now) - generated();
  const size_t count = std::min<uint64_t>(out.size(), left);
  FrameSums sums{.frames = count};
  for (size_t i = 0; i < count; ++i) {
    out[i] = frames_[next_];
    sums.bytes += out[i].size();
    if (options_.check) sums.check += checks_[next_];
    if (++next_ == frames_.size()) next_ = 0;
  }
  sent_.add(sums);
  return count;
}

size_t Generator::send(std::span<const Frame> frames, Nanos) {
  FrameSums sums{.frames = frames.size()};
  for (const Frame frame : frames) {
    sums.bytes += frame.size();
    if (options_.check) sums.check += payload_check(frame);
  }
  received_.add(sums);
  return frames.size();
}

}  // namespace nicmem::sim
