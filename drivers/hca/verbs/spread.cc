// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/spread.h"

#include <bit>

#include "drivers/hca/verbs/queues.h"

namespace nicmem::hca_verbs {
namespace {

using Fields = hca::HashFields;

struct KindFields {
  hca::PacketKind kind;
  hca::PacketKind plain;  // that it is of, too
  uint64_t source, destination, source_port, destination_port;  // ibv_rx_hash_fields
};
/// Those with ports first: the others take what these leave.
constexpr std::array<KindFields, hca::kPacketKinds> kKinds = [] {
  using enum hca::PacketKind;
  constexpr uint64_t s4 = IBV_RX_HASH_SRC_IPV4, d4 = IBV_RX_HASH_DST_IPV4;
  constexpr uint64_t s6 = IBV_RX_HASH_SRC_IPV6, d6 = IBV_RX_HASH_DST_IPV6;
  constexpr uint64_t st = IBV_RX_HASH_SRC_PORT_TCP, dt = IBV_RX_HASH_DST_PORT_TCP;
  constexpr uint64_t su = IBV_RX_HASH_SRC_PORT_UDP, du = IBV_RX_HASH_DST_PORT_UDP;
  return std::array<KindFields, hca::kPacketKinds>{{{kIpv4Tcp, kIpv4, s4, d4, st, dt},
                                                    {kIpv4Udp, kIpv4, s4, d4, su, du},
                                                    {kIpv6Tcp, kIpv6, s6, d6, st, dt},
                                                    {kIpv6Udp, kIpv6, s6, d6, su, du},
                                                    {kIpv4, kIpv4, s4, d4, 0, 0},
                                                    {kIpv6, kIpv6, s6, d6, 0, 0}}};
}();

uint64_t hashed(const KindFields& kind, uint8_t fields) {
  return ((fields & Fields::kSourceAddress) != 0 ? kind.source : 0) |
         ((fields & Fields::kDestinationAddress) != 0 ? kind.destination : 0) |
         ((fields & Fields::kSourcePort) != 0 ? kind.source_port : 0) |
         ((fields & Fields::kDestinationPort) != 0 ? kind.destination_port : 0);
}

uint8_t fields_of(const hca::RssOptions& options, hca::PacketKind kind) {
  return options.fields[static_cast<size_t>(kind)];
}

}  // namespace

Result<std::shared_ptr<Spread>> Spread::create(ibv_context* context,
                                               const hca::RssOptions& options) {
  auto spread = std::make_shared<Spread>();
  std::vector<ibv_wq*> queues;
  for (hca::ReceiveQueue* queue : options.table)
    queues.push_back(static_cast<VerbsReceiveQueue*>(queue)->verbs());
  NM_TRY(ibv_rwq_ind_table* const first, spread->make_table(context, {queues[0]}));
  if (queues.size() > 1) {
    NM_TRY(ibv_rwq_ind_table* const all, spread->make_table(context, queues));
    for (const KindFields& kind : kKinds) {
      const uint8_t fields = fields_of(options, kind.kind);
      const bool own = kind.kind == kind.plain ? fields != 0
                                               : fields != fields_of(options, kind.plain);
      if (!own) continue;  // it is treated as the plain kind, or as what is not IP
      const uint64_t mask = hashed(kind, fields);
      NM_TRY_VOID(spread->add(context, kind.kind, mask, mask != 0 ? all : first, options));
    }
  }
  NM_TRY_VOID(spread->add(context, std::nullopt, 0, first, options));
  return spread;
}

Result<ibv_rwq_ind_table*> Spread::make_table(ibv_context* context, std::vector<ibv_wq*> queues) {
  ibv_rwq_ind_table_init_attr attr{};
  attr.log_ind_tbl_size = static_cast<uint32_t>(std::countr_zero(queues.size()));
  attr.ind_tbl = queues.data();
  NM_TRY(auto made, own("table of " + std::to_string(queues.size()) + " receive queues",
                        ibv_create_rwq_ind_table(context, &attr)));
  tables_.push_back(std::move(made));
  return tables_.back().get();
}

Result<void> Spread::add(ibv_context* context, std::optional<hca::PacketKind> kind, uint64_t fields,
                         ibv_rwq_ind_table* table, const hca::RssOptions& options) {
  std::array<uint8_t, 40> key = options.key;  // verbs want it writable
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_RAW_PACKET;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  attr.pd = static_cast<VerbsReceiveQueue*>(options.table[0])->verbs()->pd;
  attr.rwq_ind_tbl = table;
  attr.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                       .rx_hash_key_len = static_cast<uint8_t>(key.size()),
                       .rx_hash_key = key.data(),
                       .rx_hash_fields_mask = fields};
  NM_TRY(auto made, own("receive side scaling", ibv_create_qp_ex(context, &attr)));
  const bool ports = kind && *kind != hca::PacketKind::kIpv4 && *kind != hca::PacketKind::kIpv6;
  destinations_.push_back(
      {.kind = kind, .pair = made.get(), .rank = !kind ? 2u : ports ? 0u : 1u});
  pairs_.push_back(std::move(made));
  return {};
}

}  // namespace nicmem::hca_verbs
