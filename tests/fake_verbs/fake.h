// SPDX-License-Identifier: BSD-3-Clause
// What the fake's files share: its objects, and what every call does first. The fake is libibverbs
// and libmlx5 over the model of lib/sim, as strict as kernel and firmware; it is preloaded, and an
// unversioned definition of a symbol satisfies every versioned reference to it.
//
// Threads: one lock for all calls (Call). The model's own thread never takes it.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/hca/sim/options.h"
#include "hca/hca.h"
#include "sim/queue_memory.h"

// The headers define these as macros over what is defined here.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace nicmem::fake {

/// One call: holds the fake's lock, is counted, and fails if a test asks for it.
class Call {
 public:
  /// `context`: the call needs its device to be well; destruction does not.
  explicit Call(const char* name, ibv_context* context = nullptr);
  /// 0, or the errno with which it fails: by plan, or because the device has had a fatal error.
  int fault(int error = EIO) const { return fatal_ ? EIO : fails_ ? error : 0; }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  bool fails_;
  bool fatal_;
};

/// How a call that returns a pointer fails.
inline std::nullptr_t null(int error) {
  errno = error;
  return nullptr;
}

/// What the kernel would answer.
int errno_of(const Error& error);

enum class Kind : uint8_t {
  kContext,
  kPd,
  kMr,
  kDm,
  kCq,
  kWq,
  kTable,
  kQp,
  kFlow,
  kMatcher,
  kCounters,
  kChannel,
  kAction
};
inline constexpr std::array<const char*, 13> kKindNames = {
    "context", "pd",   "mr",      "dm",       "cq",           "wq",       "rwq_ind_table",
    "qp",      "flow", "matcher", "counters", "comp_channel", "dr_action"};

struct Context;
class Surroundings;

/// What every object has beside its public struct: who uses it, so that it outlives them (EBUSY),
/// and how a closing context gets rid of it.
class Node {
 public:
  /// `uses` are not null.
  Node(Context& owner, Kind object_kind, std::vector<Node*> used);
  ~Node();
  Node(const Node&) = delete;

  void use(Node& other) {
    ++other.users;
    uses_.push_back(&other);
  }
  /// 0: it may be destroyed now; else EBUSY, or the fault of `call`.
  int release(const Call& call);

  Context& context;
  const Kind kind;
  std::function<void()> destroy;  // deletes the object
  const void* object = nullptr;
  bool abandoned = false;  // its destruction was called, and failed
  uint32_t users = 0;

 private:
  bool only_abandoned_use_it() const;

  std::vector<Node*> uses_;
};

/// A device of NM_FAKE_VERBS; its model lives while contexts are open.
struct Device {
  ibv_device verbs{};  // first: the library hands out its address
  hca_sim::Options options;
  bool multi_packet = true;     // empw=0: hides enhanced multi-packet WQEs
  bool keep_unmatched = false;  // unmatched=wait: a wire that loses nothing waits for rules
  std::unique_ptr<hca::Hca> hca;
  std::unique_ptr<hca::Port> port;
  std::vector<Context*> contexts;  // changed under both locks
  std::mutex contexts_mutex;
  Context* creating = nullptr;  // whose ring memory is asked for
  bool fatal = false;
  std::unique_ptr<Surroundings> surroundings;

  Device();
  ~Device();
  /// 0, or an errno. Before the first context is opened, and after the last was closed.
  int open();
  void close();
  /// The model stops for good; every context gets IBV_EVENT_DEVICE_FATAL, no call works any more.
  void fail();
  size_t step(uint32_t frames);
  void tell(hca::PortEvent event);
  uint64_t guid() const;
};

/// All of them, in the order of NM_FAKE_VERBS.
std::vector<std::unique_ptr<Device>>& devices();
Device* find_device(const char* name);
Result<std::unique_ptr<sim::Wire>> open_ethdev_wire(const std::string& name);
void note_leaks(uint64_t objects);
bool has_net_raw();
/// Whether NM_FAKE_VERBS_ABSENT names that call: the device does not have it.
bool is_absent(const char* call);

struct Context {
  verbs_context verbs{};  // first: the library hands out the address of its last member
  Device& device;
  mlx5dv_ctx_allocators allocators{};  // of the program; else malloc's
  bool abandoned = false;              // as Node::abandoned
  int uar_fd = -1;
  int64_t last_uar_offset = 0;  // of the send queue made last
  std::vector<bool> uar_pages;  // of uar_fd; true: in use
  std::vector<Node*> nodes;     // oldest first
  std::mutex events_mutex;
  std::deque<ibv_async_event> events;

  explicit Context(Device& owner) : device(owner) {}
  ibv_context* ibv() { return &verbs.context; }
  void post(ibv_event_type type);
  Result<sim::QueueMemory> queue_memory(sim::QueueKind kind, size_t bytes);
};

/// Of rules: see flow.cc.
inline constexpr uint32_t kModelPriorities = 18;

/// Where in its UAR page a send queue's register is.
inline constexpr size_t kDoorbellOffset = 0x800;

struct Pd {
  ~Pd();

  ibv_pd verbs{};
  Node node;
  hca::Domain domain{};
};

struct Mr {
  ibv_mr verbs{};
  Node node;
  std::unique_ptr<hca::MemoryRegion> region;
};

struct Dm {
  ibv_dm verbs{};
  Node node;
  std::unique_ptr<hca::DeviceMemory> memory;
  uint64_t length;
};

struct Channel {
  ibv_comp_channel verbs{};
  Node node;
};

struct Cq {
  ibv_cq_ex verbs{};
  Node node;
  std::unique_ptr<hca::CompletionQueue> queue;
  std::unique_ptr<std::byte[]> uar;
};

struct Wq {
  ibv_wq verbs{};
  Node node;
  std::unique_ptr<hca::ReceiveQueue> queue;
};

struct Table {
  ibv_rwq_ind_table verbs{};
  Node node;
  std::vector<hca::ReceiveQueue*> queues;
};

struct Qp {
  ibv_qp verbs{};
  Node node;
  std::unique_ptr<hca::SendQueue> send;  // null: an RSS QP
  ibv_qp_cap cap{};
  Table* table = nullptr;  // RSS
  std::array<uint8_t, 40> key{};
  std::array<uint8_t, hca::kPacketKinds> fields{};
  int64_t uar_offset = 0;
};

struct Counters {
  ibv_counters verbs{};
  Node node;
  std::vector<int> slots;  // ibv_counter_description of each index, -1: none
  std::vector<struct Flow*> flows;
  hca::RuleCount gone{};  // of flows that were destroyed
};

struct Flow {
  ~Flow();

  ibv_flow verbs{};
  Node node;
  std::unique_ptr<hca::Rule> rule;
  Counters* counters = nullptr;
};

/// What has no public struct gets one with a context only.
struct Opaque {
  ibv_context* context;
};

struct Matcher {
  Opaque verbs{};
  Node node;
  std::vector<std::byte> mask;
  uint32_t priority = 0;
};
/// fte_match_param: seven sets of 64 bytes, of which the outer headers are the first.
inline constexpr size_t kMaxParameterBytes = 512;

struct Action {
  Opaque verbs{};
  Node node;
};

/// The object whose public struct, its first member, `verbs` is.
template <class T, class Verbs>
T& of(Verbs* verbs) {
  return *reinterpret_cast<T*>(verbs);
}
inline Context& of_context(ibv_context* context) {
  return *reinterpret_cast<Context*>(reinterpret_cast<std::byte*>(context) -
                                     offsetof(verbs_context, context));
}

/// Makes an object whose Node is built from these, and fills the public struct's context.
template <class T>
T* make(Context& context, Kind kind, std::vector<Node*> uses) {
  auto* const object = new T{.node{context, kind, std::move(uses)}};
  object->node.destroy = [object] { delete object; };
  object->node.object = object;
  object->verbs.context = context.ibv();
  return object;
}

/// The operations that the public headers call through the context.
void add_memory_operations(verbs_context& operations);
void add_queue_operations(verbs_context& operations);
void add_qp_operations(verbs_context& operations);
void add_flow_operations(verbs_context& operations);

}  // namespace nicmem::fake
