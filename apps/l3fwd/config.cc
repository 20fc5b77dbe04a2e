// SPDX-License-Identifier: BSD-3-Clause
#include "config.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include "config_reader.h"

namespace nicmem::l3fwd {
namespace {

class Parser {
 public:
  Config parse(const YAML::Node& root);

 private:
  void parse_interface(const YAML::Node& node);
  void parse_own_address(const YAML::Node& node, InterfaceConfig& interface);
  void parse_neighbour(const YAML::Node& node);
  void parse_route(const YAML::Node& node);
  void resolve_via(const Section& section, const YAML::Node& via, RouteConfig& route) const;

  /// Notes who holds a prefix, and refuses a second holder.
  void claim(const Prefix& prefix, const std::string& holder, const YAML::Node& node);
  size_t interface_of(const YAML::Node& node) const;
  std::string interface_names() const;

  Config config_;
  std::map<Prefix, std::string> claimed_;
};

hw::MacAddress station_mac(const YAML::Node& node, const std::string& what) {
  const auto mac = parse_mac(scalar(node, what));
  if (!mac || mac->is_group() || *mac == hw::MacAddress{}) {
    refuse(node, what + " '" + scalar(node, what) + "'",
           "a unicast MAC address such as 02:00:00:00:00:01");
  }
  return *mac;
}

void Parser::claim(const Prefix& prefix, const std::string& holder, const YAML::Node& node) {
  const auto [at, fresh] = claimed_.emplace(prefix, holder + " of line " + line_text(node));
  if (!fresh) refuse(node, holder + " " + format(prefix) + ": also " + at->second, "each once");
}

std::string Parser::interface_names() const {
  std::string names;
  for (const InterfaceConfig& interface : config_.interfaces)
    names += (names.empty() ? "" : ", ") + interface.port;
  return names;
}

size_t Parser::interface_of(const YAML::Node& node) const {
  const std::string name = scalar(node, "interface");
  for (size_t i = 0; i < config_.interfaces.size(); ++i) {
    if (config_.interfaces[i].port == name) return i;
  }
  refuse(node, "interface '" + name + "'", interface_names());
}

void Parser::parse_own_address(const YAML::Node& node, InterfaceConfig& interface) {
  const std::string text = scalar(node, "address");
  const auto parsed = parse_prefix(text);
  if (!parsed) refuse(node, "address '" + text + "'", "address/length such as 198.18.0.1/24");
  const Prefix own = *parsed;
  if (is_martian(own.address) && !is_link_local(own.address))
    refuse(node, "address '" + text + "'", "a unicast address that may be routed");
  const Prefix network{.address = network_of(own), .length = own.length};
  const bool has_broadcast = !own.address.is_v6 && own.length < 31;
  if (has_broadcast && (own.address == network.address || own.address == broadcast_of(own)))
    refuse(node, "address '" + text + "'", "neither the first nor the last of its network");
  if (own.length == 0) refuse(node, "address '" + text + "'", "a length of at least 1");

  // Every interface may have the same link-local addresses: they are not routed.
  if (!is_link_local(own.address)) {
    claim({.address = own.address, .length = own.address.bits()}, "own address", node);
    if (own.length < own.address.bits()) claim(network, "connected network", node);
    if (has_broadcast) {
      claim({.address = network.address, .length = 32}, "network address", node);
      claim({.address = broadcast_of(own), .length = 32}, "broadcast address", node);
    }
  }
  if (own.address.is_v6 && interface.mtu_bytes < hw::kMinIpv6Mtu) {
    refuse(node, "IPv6 address '" + text + "' with mtu " + std::to_string(interface.mtu_bytes),
           "mtu of at least " + std::to_string(hw::kMinIpv6Mtu) + " with IPv6");
  }
  interface.addresses.push_back(own);
}

void Parser::parse_interface(const YAML::Node& node) {
  const Section section(node, "interface",
                        {"port", "mac", "addresses", "mtu", "accept_any_mac", "rx_buffers"});
  InterfaceConfig interface;
  const YAML::Node port = section.required("port");
  interface.port = scalar(port, "port");
  if (interface.port.empty()) refuse(port, "port ''", "the name of an ethdev");
  for (const InterfaceConfig& other : config_.interfaces) {
    if (other.port == interface.port)
      refuse(port, "port '" + interface.port + "' given twice", "each port once");
  }
  if (const YAML::Node mac = section.find("mac")) interface.mac = station_mac(mac, "mac");
  if (const YAML::Node mtu = section.find("mtu"))
    interface.mtu_bytes = number(mtu, "mtu", kMinMtuBytes, kMaxMtuBytes);
  if (const YAML::Node any = section.find("accept_any_mac"))
    interface.accept_any_mac = boolean(any, "accept_any_mac");
  if (const YAML::Node buffers = section.find("rx_buffers"))
    interface.rx_buffers = number(buffers, "rx_buffers", kMinRxBuffers, kMaxRxBuffers);
  if (const YAML::Node addresses = section.find("addresses")) {
    for (const YAML::Node& address : list(addresses, "addresses"))
      parse_own_address(address, interface);
  }
  config_.interfaces.push_back(std::move(interface));
}

void Parser::parse_neighbour(const YAML::Node& node) {
  const Section section(node, "neighbour", {"address", "mac", "interface"});
  const YAML::Node address = section.required("address");
  const std::string text = scalar(address, "address");
  const auto parsed = parse_address(text);
  if (!parsed || (is_martian(*parsed) && !is_link_local(*parsed)))
    refuse(address, "neighbour address '" + text + "'", "a unicast IPv4 or IPv6 address");
  const NeighbourConfig neighbour{.address = *parsed,
                                  .mac = station_mac(section.required("mac"), "mac"),
                                  .interface = interface_of(section.required("interface"))};
  for (const NeighbourConfig& other : config_.neighbours) {
    if (other.address == neighbour.address && other.interface == neighbour.interface)
      refuse(address, "neighbour '" + text + "' given twice", "each neighbour once");
  }
  if (!is_link_local(neighbour.address))
    claim({.address = neighbour.address, .length = parsed->bits()}, "neighbour", address);
  config_.neighbours.push_back(neighbour);
}

void Parser::resolve_via(const Section& section, const YAML::Node& via, RouteConfig& route) const {
  const std::string text = scalar(via, "via");
  const auto address = parse_address(text);
  if (!address || address->is_v6 != route.prefix.address.is_v6) {
    refuse(via, "via '" + text + "'",
           route.prefix.address.is_v6 ? "an IPv6 neighbour" : "an IPv4 neighbour");
  }
  const YAML::Node interface = section.find("interface");
  if (is_link_local(*address) && !interface)
    refuse(via, "via link-local '" + text + "' alone", "via with interface");
  std::string known;
  for (const NeighbourConfig& neighbour : config_.neighbours) {
    if (neighbour.address == *address &&
        (!interface || interface_of(interface) == neighbour.interface)) {
      route.mac = neighbour.mac;
      route.interface = neighbour.interface;
      return;
    }
    if (neighbour.address.is_v6 == address->is_v6)
      known += (known.empty() ? "" : ", ") + format(neighbour.address);
  }
  refuse(via,
         "via '" + text + "': not among the neighbours" + (interface ? " of that interface" : ""),
         known.empty() ? "none is listed" : known);
}

void Parser::parse_route(const YAML::Node& node) {
  const Section section(node, "route", {"prefix", "via", "interface", "mac"});
  const YAML::Node prefix = section.required("prefix");
  const std::string text = scalar(prefix, "prefix");
  const auto parsed = parse_prefix(text);
  if (!parsed) refuse(prefix, "prefix '" + text + "'", "address/length such as 203.0.113.0/24");
  const IpAddress network = network_of(*parsed);
  if (network != parsed->address) {
    refuse(prefix, "prefix '" + text + "': bits set beyond its length",
           format(Prefix{.address = network, .length = parsed->length}));
  }
  claim(*parsed, "route", prefix);
  RouteConfig route{.prefix = *parsed, .mac = {}, .interface = 0};
  const YAML::Node via = section.find("via");
  const YAML::Node mac = section.find("mac");
  if (via && !mac) {
    resolve_via(section, via, route);
  } else if (mac && !via) {
    route.mac = station_mac(mac, "mac");
    route.interface = interface_of(section.required("interface"));
  } else {
    refuse(node, via ? "route with both via and mac" : "route without a next hop",
           "via, or interface and mac");
  }
  config_.routes.push_back(route);
}

Config Parser::parse(const YAML::Node& root) {
  if (!root.IsDefined() || root.IsNull())
    refuse(root, "empty configuration", "interfaces, neighbours, routes");
  const Section section(root, "configuration", {"interfaces", "neighbours", "routes"});
  const YAML::Node interfaces = section.required("interfaces");
  for (const YAML::Node& node : list(interfaces, "interfaces")) parse_interface(node);
  if (config_.interfaces.empty()) refuse(interfaces, "interfaces: empty list", "at least one");
  if (config_.interfaces.size() > UINT16_MAX) refuse(interfaces, "interfaces", "up to 65535");
  if (const YAML::Node neighbours = section.find("neighbours")) {
    for (const YAML::Node& node : list(neighbours, "neighbours")) parse_neighbour(node);
  }
  if (const YAML::Node routes = section.find("routes")) {
    for (const YAML::Node& node : list(routes, "routes")) parse_route(node);
  }
  return std::move(config_);
}

/// Ignores everything but where documents start.
class DocumentStarts : public YAML::EventHandler {
 public:
  int last_line = 0;

  void OnDocumentStart(const YAML::Mark& mark) override { last_line = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// 0 when there is none. YAML::LoadAll would tell as well, but for stray text behind a document it
/// makes empty documents without end.
int line_of_second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (!parser.HandleNextDocument(starts)) return 0;
  return parser.HandleNextDocument(starts) ? starts.last_line : 0;
}

tl::unexpected<Error> fail_at(const std::string& name, int line, const std::string& text) {
  return fail(Code::kInvalidArgument, name + ":" + std::to_string(line) + ": " + text);
}

}  // namespace

Result<Config> parse_config(const std::string& text, const std::string& name) {
  try {
    if (const int second = line_of_second_document(text); second > 0)
      return fail_at(name, second, "second document, or stray text; accepted: one document");
    return Parser().parse(YAML::Load(text));
  } catch (const Refusal& refusal) {
    return fail_at(name, refusal.line, refusal.text);
  } catch (const YAML::Exception& error) {
    return fail_at(name, error.mark.is_null() ? 1 : error.mark.line + 1,
                   "not YAML: " + error.msg + "; accepted: a YAML map");
  } catch (const std::exception& error) {  // the YAML library on input it did not foresee
    return fail_at(name, 1, std::string("not YAML: ") + error.what() + "; accepted: a YAML map");
  }
}

Result<Config> load_config(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  errno = 0;
  std::ifstream file(path);
  std::ostringstream text;
  if (file && !is_folder) text << file.rdbuf();
  if (!file || is_folder) {
    const int why = is_folder ? EISDIR : errno;
    return fail(Code::kSystem,
                path + ": cannot be read" + (why ? std::string(": ") + std::strerror(why) : "") +
                    "; accepted: a YAML file",
                why);
  }
  return parse_config(text.str(), path);
}

std::string summary(const Config& config) {
  std::ostringstream out;
  for (const InterfaceConfig& interface : config.interfaces) {
    out << "interface " << interface.port << ": mac "
        << (interface.mac ? format(*interface.mac) : "of the port") << ", mtu "
        << interface.mtu_bytes << (interface.accept_any_mac ? ", accepts any MAC" : "");
    for (const Prefix& address : interface.addresses) out << ", " << format(address);
    out << "\n";
  }
  for (const NeighbourConfig& neighbour : config.neighbours) {
    out << "neighbour " << format(neighbour.address) << " at " << format(neighbour.mac) << " on "
        << config.interfaces[neighbour.interface].port << "\n";
  }
  for (const RouteConfig& route : config.routes) {
    out << "route " << format(route.prefix) << " to " << format(route.mac) << " on "
        << config.interfaces[route.interface].port << "\n";
  }
  return out.str();
}

}  // namespace nicmem::l3fwd
