// Sink libraries, and sink functions by their names.
#pragma once

#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "hstreams/configuration.hpp"
#include "hstreams/environment.hpp"

namespace weir::hs {

/// The libraries of one program, for its devices and for its host.
class SinkLibraries {
 public:
  /// Opens the libraries. Throws Error{BAD_NAME} when no list for devices can be satisfied. Logs an
  /// error with the reason for a library that exists and cannot be loaded, and for a missing one in
  /// the host's list.
  SinkLibraries(const SinkLists& lists, const Environment& environment, bool with_blas);

  /// Finds a function: in the libraries, in the program, among the built-in ones. Throws
  /// Error{BAD_NAME}, which repeats why libraries could not be loaded.
  void* find(bool host, const char* name);

 private:
  struct Close {
    void operator()(void* library) const noexcept;
  };
  using Library = std::unique_ptr<void, Close>;
  using Folders = std::vector<std::string>;
  struct Side {
    std::vector<Library> libraries;
    std::string not_loaded;  ///< the loader's messages for libraries that exist
    std::unordered_map<std::string, void*> known;
  };

  static Library open(const std::string& name, const Folders& folders, int scope, Side& side,
                      std::string& why);
  static bool open_all(const std::vector<std::string>& names, const Folders& folders, int scope,
                       Side& side, std::string& why);
  void open_for_devices(const SinkLists& lists);
  void open_for_host(const SinkLists& lists);
  void* look_up(const Side& side, const char* name) const;

  bool with_blas_;
  std::string program_;
  Folders device_folders_, host_folders_;
  std::shared_mutex mutex_;
  Side devices_, host_;
};

}  // namespace weir::hs
