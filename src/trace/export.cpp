#include "trace/export.hpp"

#include "base/log.hpp"
#include "trace/export_format.hpp"

namespace weir::rt::trace {

void write_file(const Recording& recording, const std::string& path) {
  sys::FileWriter file(path);
  const Drawing drawing(recording);
  (path.ends_with(".pftrace") ? write_perfetto : write_chrome)(drawing, file);
  file.commit();
  if (recording.dropped > 0) {
    log::warning("{}: the recording was full: {} actions are not in it", path, recording.dropped);
  }
}

}  // namespace weir::rt::trace
