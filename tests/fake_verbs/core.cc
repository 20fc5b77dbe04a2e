// SPDX-License-Identifier: BSD-3-Clause
// Calls, objects and the devices of NM_FAKE_VERBS; and what tests may do to them.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "fake.h"
#include "nm_fake_verbs.h"

namespace nicmem::fake {
namespace {

struct State {
  std::recursive_mutex mutex;
  uint64_t calls = 0;
  uint64_t fail_at = 0;  // a value of `calls`; 0: none
  const char* failed = nullptr;
  uint64_t leaked = 0;
  bool net_raw = true;
  std::string absent;  // ",name,name,"
  std::string report;  // file to write at the end; empty: none
  std::vector<std::unique_ptr<Device>> devices;

  State();
  ~State();
};

State& state() {
  static State instance;
  return instance;
}

std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "fake_verbs: NM_FAKE_VERBS: %s\n", what.c_str());
  std::exit(1);
}

/// Cuts off what is before `separator`, which is removed too.
std::string next_part(std::string& rest, char separator) {
  const size_t at = std::min(rest.find(separator), rest.size());
  std::string part = rest.substr(0, at);
  rest.erase(0, at + 1);
  return part;
}

void take(Device& device, const std::string& argument) {
  const size_t equal = std::min(argument.find('='), argument.size());
  const std::string key = argument.substr(0, equal);
  const std::string value = argument.substr(std::min(equal + 1, argument.size()));
  if (key == "guard" || key == "empw") {
    (key == "guard" ? device.options.guard : device.multi_packet) = value != "0";
    return;
  }
  if (key == "unmatched" && (value == "wait" || value == "drop")) {
    device.keep_unmatched = value == "wait";
    return;
  }
  const auto taken = device.options.take(key, value);
  if (!taken) refuse(taken.error().what);
  if (!*taken) {
    refuse(key + ": accepted: guard, empw, unmatched=wait|drop, " + std::string(hca_sim::kKeys));
  }
}

/// "mlx5_0,sram=256KiB,wire=loop": a name, and arguments as hca=sim has them.
std::unique_ptr<Device> parse_device(std::string text) {
  auto device = std::make_unique<Device>();
  const std::string name = next_part(text, ',');
  if (name.empty() || name.size() >= IBV_SYSFS_NAME_MAX) refuse("a device needs a short name");
  device->options.port_name = name;
  while (!text.empty()) take(*device, next_part(text, ','));
  const std::string folder = from_environment("NM_FAKE_VERBS_SYSFS");
  ibv_device& verbs = device->verbs;
  verbs.node_type = IBV_NODE_CA;
  verbs.transport_type = IBV_TRANSPORT_IB;
  std::snprintf(verbs.name, sizeof verbs.name, "%s", name.c_str());
  std::snprintf(verbs.dev_name, sizeof verbs.dev_name, "uverbs_%.32s", name.c_str());
  std::snprintf(verbs.dev_path, sizeof verbs.dev_path, "%s/uverbs/%s", folder.c_str(),
                name.c_str());
  std::snprintf(verbs.ibdev_path, sizeof verbs.ibdev_path, "%s/ib/%s", folder.c_str(),
                name.c_str());
  return device;
}

State::State() {
  std::string text = from_environment("NM_FAKE_VERBS");
  while (!text.empty()) devices.push_back(parse_device(next_part(text, ';')));
  fail_at = std::strtoull(from_environment("NM_FAKE_VERBS_FAIL").c_str(), nullptr, 10);
  net_raw = from_environment("NM_FAKE_VERBS_RAW") != "0";
  absent = "," + from_environment("NM_FAKE_VERBS_ABSENT") + ",";
  report = from_environment("NM_FAKE_VERBS_REPORT");
}

uint64_t count_live(const char* kind);

/// A process that was run to see whether it cleans up leaves a few lines in a file.
State::~State() {
  FILE* const file = report.empty() ? nullptr : std::fopen(report.c_str(), "w");
  if (file == nullptr) return;
  std::fprintf(file, "calls %llu\nfailed %s\nleaked %llu\nlive %llu\n",
               static_cast<unsigned long long>(calls), failed != nullptr ? failed : "-",
               static_cast<unsigned long long>(leaked),
               static_cast<unsigned long long>(count_live(nullptr)));
  std::fclose(file);
}

uint64_t count_live(const char* kind) {
  uint64_t count = 0;
  for (const auto& device : state().devices) {
    for (const Context* context : device->contexts) {
      const bool contexts = kind == nullptr || std::strcmp(kind, kKindNames[0]) == 0;
      if (contexts && !context->abandoned) ++count;
      for (const Node* node : context->nodes) {
        const bool wanted =
            kind == nullptr || std::strcmp(kind, kKindNames[static_cast<size_t>(node->kind)]) == 0;
        if (wanted && !node->abandoned) ++count;
      }
    }
  }
  return count;
}

}  // namespace

Call::Call(const char* name, ibv_context* context)
    : lock_(state().mutex),
      fails_(++state().calls == state().fail_at),
      fatal_(context != nullptr && of_context(context).device.fatal) {
  if (fails_) state().failed = name;
}

int errno_of(const Error& error) {
  switch (error.code) {
    case Code::kExhausted:
      return ENOMEM;
    case Code::kUnsupported:
      return EOPNOTSUPP;
    case Code::kSystem:
      return error.detail != 0 ? error.detail : EIO;
    case Code::kDevice:
      return EIO;
    case Code::kInvalidArgument:
    case Code::kNotFound:
      break;
  }
  return EINVAL;
}

Node::Node(Context& owner, Kind object_kind, std::vector<Node*> used)
    : context(owner), kind(object_kind), uses_(std::move(used)) {
  for (Node* node : uses_) ++node->users;
  context.nodes.push_back(this);
}

Node::~Node() {
  for (Node* node : uses_) --node->users;
  std::erase(context.nodes, this);
}

int Node::release(const Call& call) {
  const int error = call.fault() != 0 ? call.fault() : users > 0 ? EBUSY : 0;
  if (error != 0) abandoned = abandoned || call.fault() != 0 || only_abandoned_use_it();
  return error;
}

bool Node::only_abandoned_use_it() const {
  return std::ranges::none_of(context.nodes, [this](const Node* node) {
    return !node->abandoned && std::ranges::count(node->uses_, this) != 0;
  });
}

std::vector<std::unique_ptr<Device>>& devices() { return state().devices; }

Device* find_device(const char* name) {
  for (const auto& device : devices()) {
    if (std::strcmp(device->verbs.name, name) == 0) return device.get();
  }
  return nullptr;
}

bool has_net_raw() { return state().net_raw; }

bool is_absent(const char* call) {
  return state().absent.find("," + std::string(call) + ",") != std::string::npos;
}

void note_leaks(uint64_t objects) { state().leaked += objects; }

}  // namespace nicmem::fake

using namespace nicmem;
using namespace nicmem::fake;

namespace {
/// Runs `act` on a device that has an open context.
int on_open_device(const char* name, const std::function<int(Device&)>& act) {
  const std::lock_guard lock(state().mutex);
  Device* const device = find_device(name);
  return device == nullptr || device->hca == nullptr ? ENODEV : act(*device);
}
}  // namespace

extern "C" {

size_t nm_fake_verbs_step(const char* name, uint32_t frames) {
  Device* const device = find_device(name);
  return device == nullptr || device->hca == nullptr ? 0 : device->step(frames);
}

uint64_t nm_fake_verbs_live(const char* kind) {
  const std::lock_guard lock(state().mutex);
  return count_live(kind);
}

uint64_t nm_fake_verbs_leaked(void) {
  const std::lock_guard lock(state().mutex);
  return state().leaked;
}

void nm_fake_verbs_fail(uint64_t k) {
  const std::lock_guard lock(state().mutex);
  state().fail_at = k == 0 ? 0 : state().calls + k;
  state().failed = nullptr;
}

uint64_t nm_fake_verbs_calls(void) {
  const std::lock_guard lock(state().mutex);
  return state().calls;
}

const char* nm_fake_verbs_failed(void) {
  const std::lock_guard lock(state().mutex);
  return state().failed;
}

void nm_fake_verbs_raw(int has) {
  const std::lock_guard lock(state().mutex);
  state().net_raw = has != 0;
}

int nm_fake_verbs_event(const char* name, const char* event) {
  return on_open_device(name, [event](Device& device) {
    if (std::strcmp(event, "fatal") == 0) {
      device.fail();
      return 0;
    }
    const bool up = std::strcmp(event, "port_up") == 0;
    if (!up && std::strcmp(event, "port_down") != 0) return EINVAL;
    const auto set = device.port->set_link(up);
    return set ? 0 : errno_of(set.error());
  });
}

size_t nm_fake_verbs_log(const char* name, char* text, size_t size) {
  const std::lock_guard lock(state().mutex);
  Device* const device = find_device(name);
  if (device == nullptr || device->options.faults == nullptr) return 0;
  const std::string log = device->options.faults->log.text();
  if (size > 0) std::snprintf(text, size, "%s", log.c_str());
  return log.size();
}

int nm_fake_verbs_max_frame(const char* name, uint32_t bytes) {
  return on_open_device(name, [bytes](Device& device) {
    const auto set = device.port->set_max_frame(bytes);
    return set ? 0 : errno_of(set.error());
  });
}

}  // extern "C"
