/* Found by programs that name it. */
#include <hStreams_sink.h>

HSTREAMS_EXPORT void in_listed(uint64_t* out);
HSTREAMS_EXPORT void in_both(uint64_t* out);
HSTREAMS_EXPORT void hStreams_memset_sink(uint64_t bytes, uint64_t value, uint64_t* target);

HSTREAMS_EXPORT void in_listed(uint64_t* out) { *out = 3; }
HSTREAMS_EXPORT void in_both(uint64_t* out) { *out = 3; }
HSTREAMS_EXPORT void hStreams_memset_sink(uint64_t bytes, uint64_t value, uint64_t* target) {
  (void)bytes;
  (void)value;
  *target = 4;
}
