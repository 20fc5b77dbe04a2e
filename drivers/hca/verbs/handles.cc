// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/handles.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error_number.h"

namespace nicmem::hca_verbs {
namespace {

const char* remedy(int error) {
  switch (error) {
    case EPERM:
      return ": needs CAP_NET_RAW: run as root, or setcap cap_net_raw+ep on the program";
    case EACCES:
      return ": needs access to /dev/infiniband/uverbs*";
    default:
      return "";
  }
}

void say_if_failed(const char* what, int error) {
  if (error == 0) return;
  std::fprintf(stderr, "nicmem: %s: %s: it stays until the device is closed\n", what,
               std::strerror(error));
}

}  // namespace

tl::unexpected<Error> verbs_error(const std::string& what, int error) {
  return fail(from_errno(error), what + ": " + std::strerror(error) + remedy(error), error);
}

Result<void> check(const std::string& what, int error) {
  if (error == 0) return {};
  return verbs_error(what, error < 0 ? -error : error);
}

void Destroy::operator()(ibv_context* context) const {
  say_if_failed("ibv_close_device", ibv_close_device(context) == 0 ? 0 : errno);
}
void Destroy::operator()(ibv_pd* domain) const {
  say_if_failed("ibv_dealloc_pd", ibv_dealloc_pd(domain));
}
void Destroy::operator()(ibv_dm* dm) const { say_if_failed("ibv_free_dm", ibv_free_dm(dm)); }
void Destroy::operator()(ibv_mr* region) const {
  say_if_failed("ibv_dereg_mr", ibv_dereg_mr(region));
}
void Destroy::operator()(ibv_cq* queue) const {
  say_if_failed("ibv_destroy_cq", ibv_destroy_cq(queue));
}
void Destroy::operator()(ibv_wq* queue) const {
  say_if_failed("ibv_destroy_wq", ibv_destroy_wq(queue));
}
void Destroy::operator()(ibv_rwq_ind_table* table) const {
  say_if_failed("ibv_destroy_rwq_ind_table", ibv_destroy_rwq_ind_table(table));
}
void Destroy::operator()(ibv_qp* pair) const {
  say_if_failed("ibv_destroy_qp", ibv_destroy_qp(pair));
}
void Destroy::operator()(ibv_flow* flow) const {
  say_if_failed("ibv_destroy_flow", ibv_destroy_flow(flow));
}
void Destroy::operator()(ibv_counters* counters) const {
  say_if_failed("ibv_destroy_counters", ibv_destroy_counters(counters));
}
void Destroy::operator()(mlx5dv_flow_matcher* matcher) const {
  say_if_failed("mlx5dv_destroy_flow_matcher", mlx5dv_destroy_flow_matcher(matcher));
}

}  // namespace nicmem::hca_verbs
